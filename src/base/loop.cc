#include "base/loop.h"

#include <algorithm>
#include <condition_variable>

#include "base/error.h"
#include "base/thread.h"

namespace hmc {

Result<std::shared_ptr<Loop>> Loop::create(const char* threadName, BusyPoll busy) {
  HMC_ASSIGN(EventSet events, EventSet::create(threadName));
  std::shared_ptr<Loop> loop(new Loop(std::move(events), std::move(busy)));
  HMC_ASSIGN(loop->thread_,
             startThread(threadName, [raw = loop.get()](std::stop_token) { raw->serve(); }));
  return loop;
}

void Loop::post(Task task) {
  std::lock_guard lock(mutex_);
  if (stopped_) return;
  tasks_.push_back(std::move(task));
  if (tasks_.size() == 1) events_.wake();
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

void Loop::stop() {
  std::deque<Task> dropped;
  {
    std::lock_guard lock(mutex_);
    stopped_ = true;
    dropped.swap(tasks_);
  }
  dropped.clear();
  events_.wake();
  if (thread_.joinable()) thread_.join();
}

void Loop::serve() {
  Clock::time_point spinUntil = Clock::now();
  for (unsigned round = 0; !stopped_; ++round) {
    const bool spin = busy_.look && Clock::now() < spinUntil;
    bool event = spin && busy_.look();
    if (!spin && busy_.beforeSleep && !busy_.beforeSleep()) {
      event = true;
    } else if (!spin || round % busy_.looksPerPoll == 0) {
      event = wait(spin) || event;
    }
    if (event && busy_.look) spinUntil = Clock::now() + busy_.spin;
  }
}

// Answers whether a descriptor was ready.
bool Loop::wait(bool spin) {
  bool any = false;
  for (const epoll_event& event : events_.waitForEvents(spin ? 0 : untilNextTimerMs())) {
    any = (!stopped_ && fire(event)) || any;
  }
  if (!timers_.empty()) runTimers();
  return any;
}

// The descriptors of one round may be dropped by each other's callbacks, and a callback may drop
// its own: the map says who is still there, and the handler lives until it has returned.
bool Loop::fire(const epoll_event& event) {
  const uint64_t id = event.data.u64;  // copied: the kernel's struct is packed
  if (id == EventSet::kWoken) {
    runTasks();
    return false;
  }
  auto found = handlers_.find(id);
  if (found == handlers_.end()) return false;
  const std::shared_ptr<Watch::Handler> handler = found->second;
  (*handler)(event.events);
  return true;
}

void Loop::runTasks() {
  std::deque<Task> batch;
  {
    std::lock_guard lock(mutex_);
    batch.swap(tasks_);
  }
  for (Task& task : batch) {
    task();
    task = nullptr;
  }
}

void Loop::runTimers() {
  const auto now = Clock::now();
  while (!timers_.empty() && timers_.begin()->first <= now && !stopped_) {
    Timer& timer = *timers_.begin()->second;
    timers_.erase(timers_.begin());
    Task task = std::exchange(timer.task_, nullptr);
    task();
  }
}

int Loop::untilNextTimerMs() const {
  if (timers_.empty()) return -1;
  const auto left =
      std::chrono::ceil<std::chrono::milliseconds>(timers_.begin()->first - Clock::now());
  return static_cast<int>(std::clamp<int64_t>(left.count(), 0, 1 << 30));
}

Result<std::unique_ptr<Loop::Watch>> Loop::watch(int fd, uint32_t events, Watch::Handler ready) {
  std::unique_ptr<Watch> watch(new Watch(*this, fd, ++lastWatch_));
  handlers_[watch->id_] = std::make_shared<Watch::Handler>(std::move(ready));
  if (!watch->change(events, 0)) return errnoStatus("watch a descriptor");
  return watch;
}

Loop::Watch::~Watch() {
  change(0, ~0U);
  loop_.handlers_.erase(id_);
}

bool Loop::Watch::change(uint32_t add, uint32_t remove) {
  std::lock_guard lock(mutex_);
  const uint32_t before = wanted_;
  const uint32_t after = (before | add) & ~remove;
  if (after == before) return true;
  const int how = after == 0 ? EPOLL_CTL_DEL : before == 0 ? EPOLL_CTL_ADD : EPOLL_CTL_MOD;
  if (!loop_.events_.change(how, fd_, id_, after)) return false;
  wanted_ = after;
  return true;
}

void Loop::Timer::after(std::chrono::milliseconds time, Task task) {
  cancel();
  task_ = std::move(task);
  entry_ = loop_.timers_.emplace(Clock::now() + time, this);
}

void Loop::Timer::cancel() {
  if (std::exchange(task_, nullptr)) loop_.timers_.erase(entry_);
}

}  // namespace hmc
