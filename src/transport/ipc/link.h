#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>

#include "transport/ipc/key.h"
#include "transport/ipc/neighbour.h"
#include "transport/ipc/outgoing.h"
#include "transport/ipc/remote.h"
#include "transport/ipc/shared.h"
#include "transport/transport.h"

namespace hmc::ipc {

class IpcLink final : public Link, private NeighbourServer {
 public:
  // `shared` is the transport's and outlives the link.
  IpcLink(Shared& shared, const LinkOptions& options);
  ~IpcLink() override;

  const std::string& address() const override { return address_; }
  Status connect(std::string_view peerAddress) override;
  Result<std::unique_ptr<RemoteMemory>> importKey(std::string_view key, Deadline deadline,
                                                  void* place) override;
  size_t post(std::span<const Op> ops) override;
  bool postList(const ListOp& list) override;
  void close(const Status& why) override;

 private:
  // Starts some of the operations that are not a plain copy, one at least unless the ring is full.
  size_t runSlow(std::span<const Op> ops);
  size_t throughProcess(std::span<const Op> ops);
  size_t throughRing(std::span<const Op> ops);
  size_t throughDevice(std::span<const Op> ops);
  Status closedBecause() const;
  // Why a copy was not finished.
  Status stopped() const;
  Status acceptMappings(PeerMappings mappings) override;
  void guard(const MappedRemote& remote, const Neighbour& peer, Deadline deadline);
  std::shared_ptr<MappingGuard> guardOf(const Neighbour& peer, Deadline deadline);
  // Bytes of mapped memory that this call of post() may still copy without a look at the lease.
  bool copyMapped(const MappedCopy& copy, size_t& unwatched);
  Result<Neighbour> neighbour() const;
  Result<Outgoing*> openRing(const Neighbour& peer, const Reached& reached, Deadline deadline);

  Shared& shared_;
  LinkState state_;
  const Bond bond_;
  const std::string token_;  // by which the peer can ask this link in our FdExchange
  const std::string address_;
  mutable std::mutex mutex_;  // guards what follows
  Status closed_;             // why, once it is closed
  std::optional<Address> peer_;
  std::shared_ptr<Outgoing> outgoing_;
  bool guardTried_ = false;
  std::shared_ptr<MappingGuard> guard_;           // of what we have mapped; none where it cannot be
  std::vector<std::weak_ptr<Attached>> guarded_;  // of that
  std::vector<PeerMappings> peerMappings_;        // what the peer has mapped
};

}  // namespace hmc::ipc
