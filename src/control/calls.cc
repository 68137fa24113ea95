#include "control/calls.h"

#include "base/error.h"

namespace hmc {

uint64_t Calls::begin() {
  std::lock_guard lock(mutex_);
  open_.emplace(++last_, std::nullopt);
  return last_;
}

Result<std::string> Calls::wait(uint64_t number, Deadline deadline) {
  std::unique_lock lock(mutex_);
  auto& slot = open_.at(number);
  while (!slot && ended_.ok() && !deadline.passed()) answered_.wait_until(lock, deadline.at());
  Result<std::string> result =
      slot ? *std::move(slot)
           : Result<std::string>(!ended_.ok()
                                     ? ended_
                                     : error(Code::deadlineExceeded,
                                             "{} did not answer a call before the deadline", who_));
  open_.erase(number);
  return result;
}

void Calls::forget(uint64_t number) {
  std::lock_guard lock(mutex_);
  open_.erase(number);
}

void Calls::answer(uint64_t number, Result<std::string> answer) {
  std::lock_guard lock(mutex_);
  auto found = open_.find(number);
  if (found == open_.end()) return;
  found->second.emplace(std::move(answer));
  answered_.notify_all();
}

void Calls::end(const Status& why) {
  std::lock_guard lock(mutex_);
  if (ended_.ok()) ended_ = why;
  answered_.notify_all();
}

}  // namespace hmc
