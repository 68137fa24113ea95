#include "transport/tcp/progress.h"

namespace hmc::tcp {

namespace {

constexpr std::chrono::microseconds kSpin{30};
constexpr unsigned kStreamBits = 8;
constexpr int kLooksPerPoll = 4;

}  // namespace

Result<std::unique_ptr<Progress>> Progress::create() {
  HMC_ASSIGN(EventSet events, EventSet::create("tcp"));
  return std::unique_ptr<Progress>(new Progress(std::move(events)));
}

uint64_t Progress::add(Watched& link) {
  std::lock_guard lock(mutex_);
  links_[nextNumber_] = &link;
  return nextNumber_++;
}

void Progress::remove(uint64_t number) {
  std::lock_guard lock(mutex_);
  links_.erase(number);
}

Status Progress::watch(int fd, uint64_t number, size_t stream) {
  return events_.add(fd, number << kStreamBits | stream, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET);
}

bool Progress::run(Deadline until) {
  auto spinUntil = Clock::now() + kSpin;
  for (int looks = 0;; ++looks) {
    // An answer most often comes where the last one came, and reading it there is one system call
    // where asking all of them first is two.
    if (looks % kLooksPerPoll != 0) {
      std::lock_guard lock(mutex_);
      if (tell(recent_, false)) return true;
      continue;
    }
    const bool spin = Clock::now() < spinUntil;
    const auto events = events_.waitForEvents(spin ? 0 : sleepMs(until));
    bool ended = false;
    bool woken = false;
    std::unique_lock lock(mutex_);
    for (const epoll_event& event : events) {
      const uint64_t tag = event.data.u64;
      woken = woken || tag == EventSet::kWoken;
      ended = tell(tag, (event.events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0) || ended;
    }
    ended = expire() || ended;
    lock.unlock();
    if (ended || woken || until.passed()) return ended;
    if (!events.empty()) spinUntil = Clock::now() + kSpin;
  }
}

bool Progress::tell(uint64_t tag, bool over) {
  auto link = links_.find(tag >> kStreamBits);
  if (link == links_.end()) return false;
  recent_ = tag;
  return link->second->ready(tag & ((1u << kStreamBits) - 1), over);
}

bool Progress::expire() {
  bool ended = false;
  for (auto& [number, link] : links_) {
    if (link->timer() <= Clock::now()) ended = link->expire() || ended;
  }
  return ended;
}

int Progress::sleepMs(Deadline until) {
  std::lock_guard lock(mutex_);
  for (auto& [number, link] : links_) until = earlier(until, Deadline(link->timer()));
  return until.at() == Clock::time_point::max() ? -1 : until.leftMs();
}

}  // namespace hmc::tcp
