#pragma once

#include <algorithm>
#include <chrono>

#include "base/error.h"

namespace hmc::pool {

inline const Status& statusOf(const Status& status) {
  return status;
}
template <class T>
const Status& statusOf(const Result<T>& result) {
  return result.status();
}

// For waiting through the store, which does not tell that a rank is gone: calls attempt(deadline of
// a slice) until it ends otherwise than by that, and check() in between, until it is not ok. Slices
// become longer, so that a store that takes long is not asked the same again and again.
template <class Attempt, class Check>
auto inSlices(Deadline deadline, Attempt attempt, Check check) -> decltype(attempt(deadline)) {
  constexpr std::chrono::milliseconds kFirst{500};
  constexpr std::chrono::milliseconds kLongest{4000};
  for (auto slice = kFirst;; slice = std::min(2 * slice, kLongest)) {
    auto outcome = attempt(earlier(deadline, slice));
    if (statusOf(outcome).code() != Code::deadlineExceeded || deadline.passed()) return outcome;
    if (Status stop = check(); !stop.ok()) return stop;
  }
}

}  // namespace hmc::pool
