#include "transport/completion.h"

namespace hmc {

void Completion::fail(const Status& status, uint32_t operations) {
  CompletionObserver* const observer = observer_;
  {
    std::lock_guard lock(mutex_);
    if (error_.ok()) error_ = status;
    failed_.store(true, std::memory_order_release);
  }
  if (pending_.fetch_sub(operations, std::memory_order_release) != operations) return;
  if (observer) observer->onComplete(this);
}

Status Completion::status() const {
  if (!failed_.load(std::memory_order_acquire)) return Status();
  std::lock_guard lock(mutex_);
  return error_;
}

}  // namespace hmc
