#include "transport/ucx/progress.h"

#include <algorithm>
#include <utility>

#include "transport/ucx/link.h"

namespace hmc::ucx {

namespace {

constexpr std::chrono::microseconds kSpin{30};
// Polls under one lock: some microseconds, then other threads get their turn.
constexpr int kBurst = 16;

}  // namespace

Result<std::unique_ptr<Progress>> Progress::create(Context& context, Draining& draining) {
  HMC_ASSIGN(EventSet events, EventSet::create("ucx"));
  return std::unique_ptr<Progress>(new Progress(context, draining, std::move(events)));
}

bool Progress::run(Deadline until) {
  auto spinUntil = Clock::time_point::min();
  while (true) {
    {
      std::lock_guard lock(mutex_);
      if (pollBurst()) return true;
      if (std::exchange(wanted_, false)) return false;
    }
    const auto now = Clock::now();
    if (now >= until.at()) return false;
    if (spinUntil == Clock::time_point::min()) spinUntil = now + kSpin;
    if (now < spinUntil) continue;
    if (await(until)) until = Deadline::now();
    spinUntil = Clock::now() + kSpin;
  }
}

void Progress::wake() {
  std::lock_guard lock(mutex_);
  wanted_ = true;
  wakeIfAsleep();
}

bool Progress::pollBurst() {
  for (int i = 0; i < kBurst && ended_ == reported_; ++i) {
    for (UcxLink* one : polled_) one->poll();
  }
  if (needsReconcile_) reconcile();
  const bool ended = ended_ != reported_;
  reported_ = ended_;
  return ended;
}

// True when somebody wants run() to return.
bool Progress::await(Deadline until) {
  {
    std::lock_guard lock(mutex_);
    std::erase_if(polled_, [](UcxLink* one) { return one->arm(); });
    // One of them has something to do already.
    if (!polled_.empty() || ended_ != reported_) return false;
    for (UcxLink* one : all_) until = earlier(until, Deadline(one->timer_));
    sleeping_ = true;
  }
  const auto ready = events_.wait(until.leftMs());
  std::lock_guard lock(mutex_);
  sleeping_ = false;
  bool woken = false;
  for (const uint64_t id : ready) {
    woken = woken || id == EventSet::kWoken;
    const auto one = std::find(all_.begin(), all_.end(), reinterpret_cast<UcxLink*>(id));  // NOLINT
    if (one != all_.end()) startPolling(**one);
  }
  return woken;
}

void Progress::startPolling(UcxLink& link) {
  if (std::find(polled_.begin(), polled_.end(), &link) == polled_.end()) {
    polled_.push_back(&link);
  }
}

void Progress::wakeIfAsleep() {
  if (sleeping_) events_.wake();
}

void Progress::reconcile() {
  needsReconcile_ = false;
  for (UcxLink* one : all_) {
    if (!one->reconcile()) needsReconcile_ = true;
  }
}

}  // namespace hmc::ucx
