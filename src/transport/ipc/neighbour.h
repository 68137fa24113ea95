#pragma once

#include <string>
#include <vector>

#include "base/bond.h"
#include "base/parcel.h"
#include "base/peer_user.h"
#include "hmc/deadline.h"
#include "hmc/result.h"
#include "transport/ipc/key.h"
#include "transport/ipc/mapping_guard.h"
#include "transport/ipc/ring.h"
#include "transport/ipc/shared_block.h"

namespace hmc::ipc {

struct Shared;

// What the owner of some memory says about it, and who that is.
struct Reached {
  Description what;
  std::vector<Fd> share;
  Fd page;  // the owner's ServicePage, where `what` says so
  PeerProcess owner;
};

// The other end of a link, asked from process to process: the kernel says whose process answers,
// and the link's credentials that it is the peer's. What the peer claims through the control
// connection is only where to ask.
class Neighbour {
 public:
  Neighbour(Address address, Bond bond) : address_(std::move(address)), bond_(std::move(bond)) {}

  const std::string& exchange() const { return address_.exchange; }
  Result<Reached> describe(const Key& key, Deadline deadline) const;
  // Both stay ours.
  Status openRing(const SharedBlock<Ring>& ring, const SharedBlock<ServicePage>& page,
                  Deadline deadline) const;
  // Lets the owner of what we map protect it.
  Status giveMappings(const MappingGuard& guard, Deadline deadline) const;

 private:
  Address address_;
  Bond bond_;
};

// What our end of the link `link` answers; the asker has proven itself.
class NeighbourServer {
 public:
  virtual ~NeighbourServer() = default;
  // The peer has mapped memory of ours.
  virtual Status acceptMappings(PeerMappings mappings) = 0;
};
Result<Parcel> answerNeighbour(Shared& shared, const std::string& link, NeighbourServer& server,
                               Parcel request);

}  // namespace hmc::ipc
