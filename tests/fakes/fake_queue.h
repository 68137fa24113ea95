#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <thread>

namespace hmc {

// The stream of a FakeAccelerator: copies run in order on a thread of its own, but only when
// somebody waits for them or `delay` after they were queued. A caller that forgets to wait sees old
// bytes. Safe from any thread.
class FakeQueue {
 public:
  struct Copy {
    char* dst;
    const char* src;
    size_t size;
  };

  FakeQueue(const char* threadName, std::chrono::milliseconds delay);
  // Copies that nobody waited for are dropped.
  ~FakeQueue() = default;

  void push(const Copy& copy);
  // Returns when everything that was pushed before has run.
  void drain();
  // How many copies have run, waited for or not.
  uint64_t done();

 private:
  using Clock = std::chrono::steady_clock;
  struct Entry {
    Copy copy;
    Clock::time_point due;
  };

  void run(const std::stop_token& stop);
  // Waits for a copy that may run. False when the thread shall end.
  bool waitForWork(std::unique_lock<std::mutex>& lock, const std::stop_token& stop);

  const std::chrono::milliseconds delay_;
  std::mutex mutex_;  // guards the members below
  std::condition_variable_any changed_;
  std::deque<Entry> entries_;
  uint64_t pushed_ = 0;  // copies so far
  uint64_t wanted_ = 0;  // copies that somebody waits for
  uint64_t done_ = 0;
  std::jthread thread_;  // last: it uses all of the above
};

}  // namespace hmc
