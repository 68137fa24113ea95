#pragma once

#include <chrono>
#include <functional>
#include <memory>

#include "hmc/result.h"

namespace hmc {

// One thread that waits for sockets, timers and tasks. The only place that knows Asio. A callback
// runs on the loop's thread and never after the object that it was given to is gone.
class Loop {
 public:
  using Task = std::function<void()>;

  static Result<std::shared_ptr<Loop>> create(const char* threadName);
  ~Loop();  // as stop()
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  // From any thread, in order. After stop() the task is dropped.
  void post(Task task);
  // Runs the task on the loop's thread and waits for it; at once when called on that thread. No
  // deadline: nothing on that thread waits for a peer.
  void run(const Task& task);
  bool onThread() const;
  // Ends the thread and drops what it had not begun. Not on the loop's thread.
  void stop();

  // Readiness of a descriptor that somebody else owns and closes after the Watch is gone. Only on
  // the loop's thread.
  class Watch {
   public:
    ~Watch();
    // Calls once, when the descriptor is ready.
    void whenReadable(Task task);
    void whenWritable(Task task);

   private:
    friend class Loop;
    struct State;
    explicit Watch(std::shared_ptr<State> state);
    std::shared_ptr<State> state_;
  };
  Result<std::unique_ptr<Watch>> watch(int fd);

  // Only on the loop's thread.
  class Timer {
   public:
    explicit Timer(Loop& loop);
    ~Timer();
    // Calls once, after that time; replaces what was set before.
    void after(std::chrono::milliseconds time, Task task);
    void cancel();

   private:
    struct State;
    std::shared_ptr<State> state_;
  };

 private:
  struct Impl;
  explicit Loop(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace hmc
