#include "control/calls.h"

#include <vector>

#include "base/error.h"

namespace hmc::control {

uint64_t Calls::begin(Then then) {
  std::unique_lock lock(mutex_);
  const uint64_t number = ++last_;
  if (then && !ended_.ok()) {
    const Status why = ended_;
    lock.unlock();
    then(why);
  } else {
    open_.emplace(number, Question{std::nullopt, std::move(then)});
  }
  return number;
}

Result<std::string> Calls::wait(uint64_t number, Deadline deadline, const std::stop_token& stop) {
  const std::stop_callback wake(stop, [this] {
    std::lock_guard lock(mutex_);
    answered_.notify_all();
  });
  std::unique_lock lock(mutex_);
  auto& slot = open_.at(number).answer;
  while (!slot && ended_.ok() && !stop.stop_requested() && !deadline.passed())
    answered_.wait_until(lock, deadline.at());
  Result<std::string> result = slot ? *std::move(slot) : noAnswer(stop);
  open_.erase(number);
  return result;
}

Status Calls::noAnswer(const std::stop_token& stop) const {
  if (!ended_.ok()) return ended_;
  if (stop.stop_requested()) return error(Code::cancelled, "a call of {} was given up", who_);
  return error(Code::deadlineExceeded, "{} did not answer a call before the deadline", who_);
}

void Calls::forget(uint64_t number) {
  std::lock_guard lock(mutex_);
  open_.erase(number);
}

void Calls::answer(uint64_t number, Result<std::string> answer) {
  std::unique_lock lock(mutex_);
  auto found = open_.find(number);
  if (found == open_.end()) return;
  if (!found->second.then) {
    found->second.answer.emplace(std::move(answer));
    answered_.notify_all();
    return;
  }
  Then then = std::move(found->second.then);
  open_.erase(found);
  lock.unlock();
  then(std::move(answer));
}

void Calls::end(const Status& why) {
  std::vector<Then> left;
  std::unique_lock lock(mutex_);
  if (ended_.ok()) ended_ = why;
  answered_.notify_all();
  for (auto at = open_.begin(); at != open_.end();) {
    if (!at->second.then) {
      ++at;
      continue;
    }
    left.push_back(std::move(at->second.then));
    at = open_.erase(at);
  }
  Status reason = ended_;
  lock.unlock();
  for (const Then& then : left) then(reason);
}

}  // namespace hmc::control
