#include "transport/ipc/service_page.h"

namespace hmc::ipc {

OwnServicePage::~OwnServicePage() {
  if (!token_.empty()) fds_.withdraw(token_);
}

Result<std::string> OwnServicePage::token() {
  std::lock_guard lock(mutex_);
  if (!block_) {
    HMC_ASSIGN(auto block, SharedBlock<ServicePage>::create());
    HMC_ASSIGN(token_, block.offer(fds_));
    block_.emplace(std::move(block));
    page_.store(&**block_, std::memory_order_release);
  }
  return token_;
}

}  // namespace hmc::ipc
