#pragma once

#include <atomic>
#include <cstdint>
#include <functional>

namespace hmc {

// Counts the threads that are busy with something, so that it can be taken away from them. Safe
// from any thread.
class UseGate {
 public:
  // False once the gate is closed; else leave() later.
  bool enter() {
    if ((state_.fetch_add(1) & kClosed) == 0) return true;
    leave();
    return false;
  }
  void leave() {
    if (state_.fetch_sub(1) == kClosed + 1) tell();
  }
  // Nobody enters any more. `released` is called once, when everybody has left: by the last one, or
  // from here. Closing it again changes nothing.
  void close(std::function<void()> released) {
    if (closing_.exchange(true)) return;
    released_ = std::move(released);
    if (state_.fetch_or(kClosed) == 0) tell();
  }

  // What close() would call is going away.
  void forget() { told_.store(true); }

 private:
  static constexpr uint32_t kClosed = uint32_t{1} << 31;

  // A thread that was turned away may be the last to leave, too.
  void tell() {
    if (!told_.exchange(true)) released_();
  }

  std::atomic<uint32_t> state_{0};  // how many are inside, and kClosed
  std::atomic<bool> closing_{false};
  std::atomic<bool> told_{false};
  std::function<void()> released_;  // set before kClosed is
};

}  // namespace hmc
