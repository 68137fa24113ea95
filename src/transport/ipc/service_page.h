#pragma once

#include <atomic>
#include <mutex>
#include <optional>
#include <string>

#include "base/fd_exchange.h"
#include "hmc/result.h"
#include "transport/ipc/ring.h"
#include "transport/ipc/shared_block.h"

namespace hmc::ipc {

// Our ServicePage: made when a ring first needs it, then there for the life of the transport. Safe
// from any thread.
class OwnServicePage {
 public:
  explicit OwnServicePage(FdExchange& fds) : fds_(fds) {}
  ~OwnServicePage();

  // Makes it if need be; the token under which peers fetch it.
  Result<std::string> token();
  // Null until token() was called.
  ServicePage* get() const { return page_.load(std::memory_order_acquire); }

 private:
  FdExchange& fds_;
  std::mutex mutex_;
  std::optional<SharedBlock<ServicePage>> block_;  // guarded by mutex_
  std::string token_;                              // guarded by mutex_
  std::atomic<ServicePage*> page_{nullptr};        // block_'s, once it is complete
};

}  // namespace hmc::ipc
