#include "pool/copy_state.h"

#include <algorithm>

#include "base/error.h"

namespace hmc {

void PoolCopyState::settle(const PoolElements& elements, const Status& outcome) {
  if (outcome.ok()) return;
  failed_ = true;
  std::fill_n(outcomes_.begin() + static_cast<ptrdiff_t>(elements.first), elements.count, outcome);
}

void PoolCopyState::endLocked(size_t part, const Status& outcome) {
  for (const PoolElements& elements : parts_[part]->elements) settle(elements, outcome);
  parts_.erase(parts_.begin() + static_cast<ptrdiff_t>(part));
}

Status PoolCopyState::firstFailure() const {
  if (!failed_) return Status();
  for (const Status& outcome : outcomes_) {
    if (!outcome.ok()) return outcome;
  }
  return Status();
}

bool PoolCopyState::done() {
  std::lock_guard lock(mutex_);
  for (size_t i = parts_.size(); i > 0; --i) {
    if (parts_[i - 1]->done()) endLocked(i - 1, parts_[i - 1]->wait(Deadline::now()));
  }
  return parts_.empty();
}

Status PoolCopyState::wait(Deadline deadline) {
  std::lock_guard lock(mutex_);
  while (!parts_.empty()) {
    Status outcome = parts_.back()->wait(deadline);
    if (outcome.code() == Code::deadlineExceeded && !parts_.back()->done()) return outcome;
    endLocked(parts_.size() - 1, outcome);
  }
  return firstFailure();
}

Status PoolCopyState::cancel() {
  std::lock_guard lock(mutex_);
  while (!parts_.empty()) endLocked(parts_.size() - 1, parts_.back()->cancel());
  return firstFailure();
}

}  // namespace hmc
