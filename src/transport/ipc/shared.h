#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "base/fd_exchange.h"
#include "transport/ipc/copiers.h"
#include "transport/ipc/device_copies.h"
#include "transport/ipc/ipc.h"
#include "transport/ipc/offered_memory.h"
#include "transport/ipc/outgoing.h"
#include "transport/ipc/service.h"

namespace hmc::ipc {

// What the links and registrations of one transport have in common.
struct Shared {
  // `fd` is the page's, for peers.
  Shared(FdExchange& exchange, IpcOptions allowed, SharedBlock<ServicePage> ours, Fd fd)
      : fds(exchange), options(allowed), page(std::move(ours)), pageFd(std::move(fd)) {}

  FdExchange& fds;
  const IpcOptions options;
  const SharedBlock<ServicePage> page;
  const Fd pageFd;
  OfferedMemory offered;
  Exports exports;  // what rings reach
  Service service{*page, exports};
  Copiers copiers;
  DeviceCopies deviceCopies;

  // The rings that progress() looks at.
  void add(std::shared_ptr<Outgoing> ring) {
    std::lock_guard lock(mutex_);
    rings_.push_back(std::move(ring));
    count_.store(rings_.size(), std::memory_order_release);
  }
  void remove(const Outgoing* ring) {
    std::lock_guard lock(mutex_);
    std::erase_if(rings_, [&](const auto& each) { return each.get() == ring; });
    count_.store(rings_.size(), std::memory_order_release);
  }
  bool pump() {
    bool finished = deviceCopies.poll();
    std::lock_guard lock(mutex_);
    for (const auto& ring : rings_) finished = ring->pump() || finished;
    return finished;
  }
  bool hasRings() const { return count_.load(std::memory_order_acquire) > 0; }

 private:
  std::atomic<size_t> count_{0};  // of rings_
  std::mutex mutex_;              // guards rings_
  std::vector<std::shared_ptr<Outgoing>> rings_;
};

}  // namespace hmc::ipc
