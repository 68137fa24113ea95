#pragma once

#include "hmc/cpp17.h"

#include <chrono>
#include <ratio>
#include <type_traits>

namespace hmc {

/// How long a call may wait: nanoseconds. A duration that they cannot count, such as
/// std::chrono::hours::max(), becomes the longest that they can, which is 292 years.
class Timeout : public std::chrono::nanoseconds {
 public:
  /// Any duration.
  template <class Rep, class Period>
  constexpr Timeout(std::chrono::duration<Rep, Period> time)  // NOLINT(google-explicit-constructor)
      : std::chrono::nanoseconds(clamped(time)) {}
  /// Of so many nanoseconds.
  constexpr explicit Timeout(rep count) : std::chrono::nanoseconds(count) {}

 private:
  template <class Rep, class Period>
  static constexpr std::chrono::nanoseconds clamped(std::chrono::duration<Rep, Period> time) {
    using std::chrono::nanoseconds;
    using Wide = std::chrono::duration<std::common_type_t<Rep, nanoseconds::rep>, Period>;
    if constexpr (std::ratio_greater<Period, std::nano>::value || !std::is_integral<Rep>::value ||
                  !std::is_signed<Rep>::value) {
      constexpr auto kMost = std::chrono::duration_cast<Wide>(nanoseconds::max());
      if (time >= kMost) return nanoseconds::max();
      if constexpr (std::is_signed<Rep>::value) {
        if (time <= -kMost) return -nanoseconds::max();
      }
    }
    return std::chrono::duration_cast<nanoseconds>(time);
  }
};

/// The moment by which a call returns. Built once from the caller's timeout and passed down, so
/// that a call of several steps still ends on time. A duration converts to "that long from now".
class Deadline {
 public:
  using Clock = std::chrono::steady_clock;  ///< Whose moments these are.

  /// That long from now.
  template <class Rep, class Period>
  Deadline(std::chrono::duration<Rep, Period> timeout)  // NOLINT(google-explicit-constructor)
      : at_(clamped(Timeout(timeout))) {}
  explicit Deadline(Clock::time_point at) : at_(at) {}  ///< At that moment.

  static Deadline now() { return Deadline(Clock::now()); }  ///< Has passed already.
  /// For work that something else bounds. Never used to wait for a peer.
  static Deadline never() { return Deadline(Clock::time_point::max()); }

  bool passed() const { return Clock::now() >= at_; }  ///< Whether the moment has come.
  Clock::time_point at() const { return at_; }         ///< The moment.
  /// From now to it; 0 when it has passed.
  std::chrono::nanoseconds left() const {
    if (at_ == Clock::time_point::max()) return std::chrono::nanoseconds::max();
    auto rest = at_ - Clock::now();
    return rest.count() > 0 ? rest : std::chrono::nanoseconds(0);
  }
  /// Whole milliseconds for poll(2) and the like, rounded up, at most `most`.
  int leftMs(int most = 1000 * 1000) const {
    auto rest = left();
    if (rest >= std::chrono::milliseconds(most)) return most;
    return static_cast<int>((rest.count() + 999999) / 1000000);
  }

  /// The one that comes first.
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
