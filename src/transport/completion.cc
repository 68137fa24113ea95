#include "transport/completion.h"

namespace hmc {

void Completion::fail(const Status& status, uint32_t operations) {
  CompletionObserver* const observer = observer_;
  const uint64_t id = id_;
  {
    std::lock_guard lock(mutex_);
    if (error_.ok()) {
      error_ = status;
      state_.fetch_or(static_cast<uint64_t>(status.code()) << 32, std::memory_order_release);
    }
  }
  const uint64_t before = state_.fetch_sub(operations, std::memory_order_release);
  if (count(before) == operations && observer) observer->onComplete(id, code(before));
}

Status Completion::status() const {
  if (!failed()) return Status();
  std::lock_guard lock(mutex_);
  return error_;
}

}  // namespace hmc
