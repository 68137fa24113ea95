#pragma once

#include <array>
#include <list>
#include <memory>
#include <mutex>
#include <span>
#include <string>

#include "base/lease.h"
#include "transport/ipc/ring.h"
#include "transport/ipc/shared_block.h"
#include "transport/transport.h"

namespace hmc::ipc {

class Neighbour;

// The origin side of one link's ring: cuts operations into pieces, feeds them to the peer's service
// and finishes what it has done. Safe from any thread.
class Outgoing {
 public:
  // Makes a ring and asks the peer to accept it. `ours` is our ServicePage, `theirs` the peer's.
  static Result<std::unique_ptr<Outgoing>> open(const Neighbour& peer,
                                                const SharedBlock<ServicePage>& ours,
                                                SharedBlock<ServicePage> theirs,
                                                std::shared_ptr<Lease> lease, Deadline deadline);
  ~Outgoing();

  // How many operations, from the front, were taken. Every one is for a region of that number.
  size_t post(std::span<const Op> ops, uint64_t region);
  // Moves things along; true when an operation finished.
  bool pump();
  void close(const Status& why);
  // Nothing is pending.
  bool idle() const;

 private:
  struct Pending {
    Op op;
    uint64_t region;
    size_t issued = 0;         // bytes that have been given to slots
    uint32_t outstanding = 0;  // slots that have not come back
    Status error;
  };
  struct Use {
    Pending* pending = nullptr;
    size_t offset = 0;  // within the operation
    size_t size = 0;
  };

  Outgoing(std::string exchange, SharedBlock<Ring> ring, SharedBlock<ServicePage> theirs,
           std::shared_ptr<Lease> lease);
  // All of these are called with mutex_ held.
  bool pumpLocked();
  void closeLocked(const Status& why);
  void closeIfPeerIsGone();
  void reap();
  void reapSlot(uint32_t index);
  void issue();
  void issueInto(uint32_t index, Pending& pending);
  void abandon();
  bool finish();

  const std::string exchange_;  // the peer's
  SharedBlock<Ring> ring_;
  SharedBlock<ServicePage> theirs_;
  const std::shared_ptr<Lease> lease_;
  mutable std::mutex mutex_;  // guards everything below, and our side of the slots
  std::list<Pending> pending_;
  std::array<Use, kSlots> uses_;
  Status closed_;                       // why, once it is closed
  Deadline fence_ = Deadline::never();  // when the lease is over, once it is closed
  Deadline probe_;                      // when to look next whether the peer is still there
};

}  // namespace hmc::ipc
