#pragma once

#include <algorithm>
#include <chrono>
#include <stop_token>

#include "base/error.h"

namespace hmc::pool {

inline const Status& statusOf(const Status& status) {
  return status;
}
template <class T>
const Status& statusOf(const Result<T>& result) {
  return result.status();
}

// Stops when one of two tokens does.
class EitherStop {
 public:
  EitherStop(const std::stop_token& one, const std::stop_token& other)
      : one_(one, Request{source_}), other_(other, Request{source_}) {}
  std::stop_token token() const { return source_.get_token(); }

 private:
  struct Request {
    std::stop_source source;
    void operator()() { source.request_stop(); }
  };
  std::stop_source source_;
  std::stop_callback<Request> one_;
  std::stop_callback<Request> other_;
};

// For waiting through the store, which does not tell that a rank is gone: calls attempt(deadline of
// a slice, stop) until it ends otherwise than by these, and check() before each, until it is not
// ok. `wake` makes what stops a slice early, so that check() has another look. Slices let a store
// that was restarted hear of us again. They become longer, so that one that takes long is not asked
// the same again and again.
template <class Wake, class Attempt, class Check>
auto inSlices(Deadline deadline, Wake wake, Attempt attempt, Check check)
    -> decltype(attempt(deadline, std::stop_token())) {
  constexpr std::chrono::milliseconds kFirst{500};
  constexpr std::chrono::milliseconds kLongest{4000};
  for (auto slice = kFirst;; slice = std::min(2 * slice, kLongest)) {
    const EitherStop stop = wake();
    if (Status problem = check(); !problem.ok()) return problem;
    auto outcome = attempt(earlier(deadline, slice), stop.token());
    const Code code = statusOf(outcome).code();
    if (code != Code::cancelled && (code != Code::deadlineExceeded || deadline.passed()))
      return outcome;
  }
}

}  // namespace hmc::pool
