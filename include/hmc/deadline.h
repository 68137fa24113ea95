#pragma once

#include <chrono>

namespace hmc {

// The moment by which a call returns. Built once from the caller's timeout and passed down, so that
// a call of several steps still ends on time. A duration converts to "that long from now".
class Deadline {
 public:
  using Clock = std::chrono::steady_clock;

  template <class Rep, class Period>
  Deadline(std::chrono::duration<Rep, Period> timeout)  // NOLINT(google-explicit-constructor)
      : at_(clamped(std::chrono::duration_cast<std::chrono::nanoseconds>(timeout))) {}
  explicit Deadline(Clock::time_point at) : at_(at) {}

  static Deadline now() { return Deadline(Clock::now()); }
  // For work that something else bounds. Never used to wait for a peer.
  static Deadline never() { return Deadline(Clock::time_point::max()); }

  bool passed() const { return Clock::now() >= at_; }
  Clock::time_point at() const { return at_; }
  std::chrono::nanoseconds left() const {
    if (at_ == Clock::time_point::max()) return std::chrono::nanoseconds::max();
    auto rest = at_ - Clock::now();
    return rest.count() > 0 ? rest : std::chrono::nanoseconds(0);
  }
  // Whole milliseconds for poll(2) and the like, rounded up, at most `most`.
  int leftMs(int most = 1000 * 1000) const {
    auto rest = left();
    if (rest >= std::chrono::milliseconds(most)) return most;
    return static_cast<int>((rest.count() + 999999) / 1000000);
  }

  friend Deadline earlier(Deadline a, Deadline b) { return a.at_ < b.at_ ? a : b; }

 private:
  static Clock::time_point clamped(std::chrono::nanoseconds timeout) {
    auto now = Clock::now();
    if (timeout.count() <= 0) return now;
    if (timeout > Clock::time_point::max() - now) return Clock::time_point::max();
    return now + timeout;
  }
  Clock::time_point at_;
};

}  // namespace hmc
