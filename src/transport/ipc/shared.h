#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "base/fd_exchange.h"
#include "transport/ipc/copiers.h"
#include "transport/ipc/device_copies.h"
#include "transport/ipc/ipc.h"
#include "transport/ipc/outgoing.h"
#include "transport/ipc/service.h"
#include "transport/ipc/service_page.h"

namespace hmc::ipc {

// What the links and registrations of one transport have in common.
struct Shared {
  Shared(FdExchange& exchange, IpcOptions allowed)
      : fds(exchange), options(allowed), page(exchange) {}

  FdExchange& fds;
  const IpcOptions options;
  OwnServicePage page;
  Exports exports;  // what rings reach
  Service service{page, exports};
  Copiers copiers;
  DeviceCopies deviceCopies;

  // The rings that progress() looks at.
  void add(std::shared_ptr<Outgoing> ring);
  void remove(const Outgoing* ring);
  bool pump();
  bool hasRings() const { return count_.load(std::memory_order_acquire) > 0; }

 private:
  std::atomic<size_t> count_{0};  // of rings_
  std::mutex mutex_;              // guards rings_
  std::vector<std::shared_ptr<Outgoing>> rings_;
};

}  // namespace hmc::ipc
