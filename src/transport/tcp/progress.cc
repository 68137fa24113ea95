#include "transport/tcp/progress.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>

#include <algorithm>

#include "base/error.h"

namespace hmc::tcp {

namespace {

constexpr std::chrono::microseconds kSpin{30};
constexpr unsigned kStreamBits = 8;
constexpr uint64_t kWake = ~uint64_t{0};
constexpr int kLooksPerPoll = 4;

}  // namespace

Result<std::unique_ptr<Progress>> Progress::create() {
  Fd epoll(epoll_create1(EPOLL_CLOEXEC));
  if (!epoll) return errnoStatus("making an epoll for tcp");
  Fd wake(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake) return errnoStatus("making an eventfd for tcp");
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = kWake;
  if (epoll_ctl(epoll.get(), EPOLL_CTL_ADD, wake.get(), &event) != 0) {
    return errnoStatus("watching an eventfd for tcp");
  }
  return std::unique_ptr<Progress>(new Progress(std::move(epoll), std::move(wake)));
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
  epoll_event event{};
  event.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET;
  event.data.u64 = number << kStreamBits | stream;
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0) {
    return errnoStatus("watching a tcp connection");
  }
  return Status();
}

void Progress::wake() {
  eventfd_write(wake_.get(), 1);
}

bool Progress::run(Deadline until) {
  auto spinUntil = Clock::now() + kSpin;
  for (int looks = 0;; ++looks) {
    if (looks % kLooksPerPoll != 0) {
      if (lookAgain()) return true;
      continue;
    }
    const bool spin = Clock::now() < spinUntil;
    epoll_event events[64];
    const int count =
        epoll_wait(epoll_.get(), events, std::size(events), spin ? 0 : sleepMs(until));
    bool ended = false;
    bool woken = false;
    std::unique_lock lock(mutex_);
    for (int i = 0; i < count; ++i) {
      const uint64_t tag = events[i].data.u64;
      if (tag == kWake) {
        eventfd_t ignored;
        eventfd_read(wake_.get(), &ignored);
        woken = true;
        continue;
      }
      auto link = links_.find(tag >> kStreamBits);
      if (link == links_.end()) continue;
      recent_ = tag;
      const bool over = (events[i].events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0;
      ended = link->second->ready(tag & ((1u << kStreamBits) - 1), over) || ended;
    }
    ended = expire() || ended;
    lock.unlock();
    if (ended || woken || until.passed()) return ended;
    if (count > 0) spinUntil = Clock::now() + kSpin;
  }
}

// An answer most often comes where the last one came, and reading it there is one system call where
// asking all of them first is two.
bool Progress::lookAgain() {
  std::lock_guard lock(mutex_);
  auto link = links_.find(recent_ >> kStreamBits);
  return link != links_.end() && link->second->ready(recent_ & ((1u << kStreamBits) - 1), false);
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
