#include "control/loop.h"

#include <asio/executor_work_guard.hpp>
#include <asio/io_context.hpp>
#include <asio/posix/stream_descriptor.hpp>
#include <asio/post.hpp>
#include <asio/steady_timer.hpp>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

#include "base/error.h"
#include "base/thread.h"

namespace hmc {

struct Loop::Impl {
  asio::io_context context{1};
  // Asio opens its descriptors for the first timer: here, where somebody can be told if it cannot.
  asio::steady_timer first{context};
  asio::executor_work_guard<asio::io_context::executor_type> work{context.get_executor()};
  std::mutex mutex;
  // Both guarded by mutex. The tasks are not given to Asio because those it has not run live until
  // the context dies, and they may own channels that own this loop.
  std::deque<Task> tasks;
  bool stopped = false;
  std::jthread thread;
  std::thread::id threadId;  // set before anybody else sees the loop

  void runTasks() {
    std::deque<Task> batch;
    {
      std::lock_guard lock(mutex);
      batch.swap(tasks);
    }
    for (auto& task : batch) {
      task();
      task = nullptr;
    }
  }
};

Result<std::shared_ptr<Loop>> Loop::create(const char* threadName) {
  try {
    auto impl = std::make_unique<Impl>();
    impl->thread =
        namedThread(threadName, [raw = impl.get()](std::stop_token) { raw->context.run(); });
    impl->threadId = impl->thread.get_id();
    return std::shared_ptr<Loop>(new Loop(std::move(impl)));
  } catch (const std::system_error& e) {
    return errnoStatus("start the control thread", e.code().value());
  }
}

Loop::Loop(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Loop::~Loop() {
  stop();
}

void Loop::post(Task task) {
  std::lock_guard lock(impl_->mutex);
  if (impl_->stopped) return;
  impl_->tasks.push_back(std::move(task));
  if (impl_->tasks.size() == 1)
    asio::post(impl_->context, [impl = impl_.get()] { impl->runTasks(); });
}

void Loop::run(const Task& task) {
  if (onThread()) return task();
  std::mutex mutex;
  std::condition_variable done;
  bool finished = false;  // guarded by mutex
  post([&] {
    task();
    std::lock_guard lock(mutex);
    finished = true;
    done.notify_one();
  });
  std::unique_lock lock(mutex);
  done.wait(lock, [&] { return finished; });
}

bool Loop::onThread() const {
  return impl_->threadId == std::this_thread::get_id();
}

void Loop::stop() {
  std::deque<Task> dropped;
  {
    std::lock_guard lock(impl_->mutex);
    impl_->stopped = true;
    dropped.swap(impl_->tasks);
  }
  impl_->context.stop();
  if (impl_->thread.joinable()) impl_->thread.join();
}

struct Loop::Watch::State {
  explicit State(asio::io_context& context) : descriptor(context) {}
  asio::posix::stream_descriptor descriptor;
  Task readable;
  Task writable;

  // The callback may destroy the Watch or set the next callback.
  static void fire(Task& slot) {
    Task task = std::exchange(slot, nullptr);
    if (task) task();
  }
};

Loop::Watch::Watch(std::shared_ptr<State> state) : state_(std::move(state)) {}

Loop::Watch::~Watch() {
  state_->readable = nullptr;
  state_->writable = nullptr;
  state_->descriptor.release();
}

void Loop::Watch::whenReadable(Task task) {
  bool waiting = static_cast<bool>(state_->readable);
  state_->readable = std::move(task);
  if (waiting) return;
  state_->descriptor.async_wait(asio::posix::stream_descriptor::wait_read,
                                [state = state_](const std::error_code& stop) {
                                  if (!stop) State::fire(state->readable);
                                });
}

void Loop::Watch::whenWritable(Task task) {
  bool waiting = static_cast<bool>(state_->writable);
  state_->writable = std::move(task);
  if (waiting) return;
  state_->descriptor.async_wait(asio::posix::stream_descriptor::wait_write,
                                [state = state_](const std::error_code& stop) {
                                  if (!stop) State::fire(state->writable);
                                });
}

Result<std::unique_ptr<Loop::Watch>> Loop::watch(int fd) {
  auto state = std::make_shared<Watch::State>(impl_->context);
  std::error_code problem;
  state->descriptor.assign(fd, problem);
  if (problem) return errnoStatus("watch a descriptor", problem.value());
  return std::unique_ptr<Watch>(new Watch(std::move(state)));
}

struct Loop::Timer::State {
  explicit State(asio::io_context& context) : timer(context) {}
  asio::steady_timer timer;
  Task task;
  uint64_t round = 0;  // tells a timer that was set again from its past
};

Loop::Timer::Timer(Loop& loop) : state_(std::make_shared<State>(loop.impl_->context)) {}

Loop::Timer::~Timer() {
  cancel();
}

void Loop::Timer::after(std::chrono::milliseconds time, Task task) {
  state_->task = std::move(task);
  state_->timer.expires_after(time);
  state_->timer.async_wait([state = state_, round = ++state_->round](const std::error_code& stop) {
    if (stop || round != state->round) return;
    Task due = std::exchange(state->task, nullptr);
    if (due) due();
  });
}

void Loop::Timer::cancel() {
  ++state_->round;
  state_->task = nullptr;
  state_->timer.cancel();
}

}  // namespace hmc
