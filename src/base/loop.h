#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <unordered_map>

#include "base/event_set.h"
#include "hmc/result.h"

namespace hmc {

// One thread that waits for descriptors, timers and tasks. A callback runs on the loop's thread,
// and never after the object that it was given to is gone.
class Loop {
 public:
  using Task = std::function<void()>;
  using Clock = std::chrono::steady_clock;

  // For a loop whose events come in bursts: sleeping between two of them adds a wake-up to each.
  // While the last event is younger than `spin`, the thread calls look() again and again instead of
  // sleeping, and asks the kernel once per `looksPerPoll` looks.
  struct BusyPoll {
    std::chrono::microseconds spin{0};
    unsigned looksPerPoll = 1;
    std::function<bool()> look;         // true counts as an event
    std::function<bool()> beforeSleep;  // optional; false: something came, look again
  };

  static Result<std::shared_ptr<Loop>> create(const char* threadName, BusyPoll busy);
  static Result<std::shared_ptr<Loop>> create(const char* threadName) {
    return create(threadName, BusyPoll());
  }
  ~Loop() { stop(); }
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  // From any thread, in order. After stop() the task is dropped.
  void post(Task task);
  // Runs the task on the loop's thread and waits for it; at once when called on that thread. No
  // deadline: nothing on that thread waits for a peer.
  void run(const Task& task);
  bool onThread() const { return thread_.get_id() == std::this_thread::get_id(); }
  // Ends the thread and drops what it had not begun. Not on the loop's thread.
  void stop();

  // Readiness of a descriptor that somebody else owns and closes after the Watch is gone. Made and
  // destroyed on the loop's thread, or when that has stopped.
  class Watch {
   public:
    ~Watch();
    Watch(const Watch&) = delete;
    Watch& operator=(const Watch&) = delete;

    // The callback runs again and again while one of these is ready: EPOLLIN, EPOLLOUT, EPOLLRDHUP.
    // From any thread. A descriptor of which nothing is wanted is not known to the kernel's set,
    // and costs its packets nothing. To want it again fails only when the kernel has no memory.
    void want(uint32_t events) { change(events, 0); }
    void ignore(uint32_t events) { change(0, events); }
    // Both in one call to the kernel, none where nothing changes. False when it refuses.
    bool change(uint32_t add, uint32_t remove);
    bool wants(uint32_t events) const { return (wanted_.load() & events) != 0; }

   private:
    friend class Loop;
    using Handler = std::function<void(uint32_t ready)>;
    Watch(Loop& loop, int fd, uint64_t id) : loop_(loop), fd_(fd), id_(id) {}

    Loop& loop_;
    const int fd_;
    const uint64_t id_;
    std::mutex mutex_;                 // held while the kernel is told
    std::atomic<uint32_t> wanted_{0};  // written under mutex_
  };
  // `ready` gets what is ready, also EPOLLHUP and EPOLLERR, which cannot be ignored.
  Result<std::unique_ptr<Watch>> watch(int fd, uint32_t events, Watch::Handler ready);

  // Only on the loop's thread, or when that has stopped.
  class Timer {
   public:
    explicit Timer(Loop& loop) : loop_(loop) {}
    ~Timer() { cancel(); }
    Timer(const Timer&) = delete;
    Timer& operator=(const Timer&) = delete;
    // Calls once, after that time; replaces what was set before.
    void after(std::chrono::milliseconds time, Task task);
    void cancel();

   private:
    friend class Loop;
    Loop& loop_;
    std::multimap<Clock::time_point, Timer*>::iterator entry_;  // of a task that is set
    Task task_;                                                 // none: not set
  };

 private:
  Loop(EventSet events, BusyPoll busy) : events_(std::move(events)), busy_(std::move(busy)) {}
  void serve();
  bool wait(bool spin);
  bool fire(const epoll_event& event);
  void runTasks();
  void runTimers();
  int untilNextTimerMs() const;

  EventSet events_;
  const BusyPoll busy_;

  // All of these belong to the loop's thread.
  uint64_t lastWatch_ = EventSet::kWoken;
  std::unordered_map<uint64_t, std::shared_ptr<Watch::Handler>> handlers_;
  std::multimap<Clock::time_point, Timer*> timers_;

  std::atomic<bool> stopped_{false};  // written under mutex_
  std::mutex mutex_;
  std::deque<Task> tasks_;  // guarded by mutex_
  std::jthread thread_;     // set before anybody else sees the loop
};

}  // namespace hmc
