#include "transport/ipc/bells.h"

namespace hmc::ipc {

OwnBells::~OwnBells() {
  if (!token_.empty()) fds_.withdraw(token_);
}

Result<std::string> OwnBells::token() {
  std::lock_guard lock(mutex_);
  if (!block_) {
    HMC_ASSIGN(auto block, SharedBlock<Bells>::create());
    HMC_ASSIGN(token_, block.offer(fds_));
    block_.emplace(std::move(block));
    bells_.store(&**block_, std::memory_order_release);
  }
  return token_;
}

}  // namespace hmc::ipc
