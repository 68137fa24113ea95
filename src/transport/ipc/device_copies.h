#pragma once

#include <atomic>
#include <list>
#include <memory>
#include <mutex>
#include <span>

#include "hmc/deadline.h"
#include "memory/pending_copy.h"
#include "transport/ipc/remote.h"
#include "transport/transport.h"

namespace hmc::ipc {

// Operations whose memory lies on devices: post() starts them, progress() finishes them, and
// neither waits for a device. Safe from any thread.
class DeviceCopies {
 public:
  // The operations go the same way between the same two memories. What cannot start fails.
  void start(const Link& link, std::span<const Op> ops, const MappedRemote& remote);
  // False where two vendors meet.
  bool start(const Link& link, const ListOp& list, const MappedRemote& remote);
  // Finishes what the devices have done; true when there was something.
  bool poll();
  bool idle() const { return count_.load(std::memory_order_acquire) == 0; }

  // A device does not stop half-way: what is under way for that link fails with `why` when it is
  // done.
  void close(const Link& link, const Status& why);
  // Returns when nothing of that link is under way; what is, when the deadline passes, fails then.
  void drain(const Link& link, Deadline deadline);

 private:
  struct Copy {
    const Link* link;
    Completion* completion;
    uint32_t operations;                // of that completion
    std::shared_ptr<UseGate> gate;      // of the peer's memory: revoking it waits
    std::shared_ptr<Attached> mapping;  // keeps the peer's memory mapped
    std::unique_ptr<PendingCopy> pending;
    Status closed;  // why its link is
  };

  template <class Start>
  void begin(const Link& link, const MappedRemote& remote, Completion* completion,
             uint32_t operations, Start start);
  static void end(const Copy& copy, const Status& status);
  // With mutex_ held. True when something was erased.
  template <class Ended>
  bool eraseIf(Ended ended) {
    const bool some = std::erase_if(copies_, ended) > 0;
    count_.store(copies_.size(), std::memory_order_release);
    return some;
  }
  bool pollLocked();
  bool has(const Link& link);

  std::atomic<size_t> count_{0};  // of copies_
  std::mutex mutex_;
  std::list<Copy> copies_;  // guarded by mutex_
};

}  // namespace hmc::ipc
