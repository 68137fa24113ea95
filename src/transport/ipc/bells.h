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

// Our Bells: made when a ring first needs them, then there for the life of the transport. Safe from
// any thread.
class OwnBells {
 public:
  explicit OwnBells(FdExchange& fds) : fds_(fds) {}
  ~OwnBells();

  // Makes them if need be; the token under which peers fetch them.
  Result<std::string> token();
  // Null until token() was called.
  Bells* get() const { return bells_.load(std::memory_order_acquire); }

 private:
  FdExchange& fds_;
  std::mutex mutex_;
  std::optional<SharedBlock<Bells>> block_;  // guarded by mutex_
  std::string token_;                        // guarded by mutex_
  std::atomic<Bells*> bells_{nullptr};       // block_'s, once it is complete
};

}  // namespace hmc::ipc
