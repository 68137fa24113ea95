#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <variant>
#include <vector>

#include "hmc/deadline.h"

namespace hmc {

class FakeQueue;

// What passes once and can be waited for: a place in a queue, or a signal of the host.
class FakePoint {
 public:
  bool passed() const { return passed_.load(std::memory_order_acquire); }
  void pass();
  // Nobody needs to ask a queue twice: it runs up to here without idling.
  void hasten();
  // False when the thread shall end instead.
  bool wait(const std::stop_token& stop);

 private:
  friend class FakeQueue;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::atomic<bool> passed_{false};
  FakeQueue* queue_ = nullptr;  // guarded by mutex_, as the next; null: a signal passes it
  uint64_t number_ = 0;         // of its entry there
};

// A stream of a FakeAccelerator: what is pushed runs in order on a thread of its own, but only when
// somebody asks whether it has, or `delay` after it was pushed. A caller that forgets to wait sees
// old bytes. Safe from any thread.
class FakeQueue {
 public:
  struct Copy {
    char* dst;
    const char* src;  // null: zeros
    size_t size;
  };
  // Asked before each entry runs: false drops it, because the device has failed.
  using Works = std::function<bool()>;

  FakeQueue(const char* threadName, std::chrono::milliseconds delay, Works works);
  // Entries that nobody waited for are dropped.
  ~FakeQueue() = default;

  void push(std::vector<Copy> copies);
  // Passes when everything before it has run.
  void push(const std::shared_ptr<FakePoint>& point);
  // What comes after it runs when it has passed.
  void hold(std::shared_ptr<FakePoint> point);

  // Runs nothing more until it is let go.
  void stall(bool stalled);
  // True when everything that was pushed before has run or was dropped.
  bool drain(Deadline deadline);
  // Entries that have run, waited for or not.
  uint64_t done();
  // Entries that have not run yet.
  uint64_t left();
  // Ends the thread, so that others can be destroyed which wait for this one.
  void stop();

 private:
  friend class FakePoint;
  using Clock = std::chrono::steady_clock;
  struct Hold {
    std::shared_ptr<FakePoint> point;
  };
  struct Entry {
    std::variant<std::vector<Copy>, std::shared_ptr<FakePoint>, Hold> work;
    Clock::time_point due;
  };

  uint64_t add(Entry entry);
  void want(uint64_t number);
  void run(const std::stop_token& stop);
  bool runEntry(Entry& entry, const std::stop_token& stop);
  // Waits for an entry that may run. False when the thread shall end.
  bool waitForWork(std::unique_lock<std::mutex>& lock, const std::stop_token& stop);

  const std::chrono::milliseconds delay_;
  const Works works_;
  std::mutex mutex_;  // guards the members below
  std::condition_variable_any changed_;
  std::deque<Entry> entries_;
  bool stalled_ = false;
  uint64_t pushed_ = 0;  // entries so far
  uint64_t wanted_ = 0;  // entries that somebody waits for
  uint64_t done_ = 0;
  std::jthread thread_;  // last: it uses all of the above
};

}  // namespace hmc
