#include "transport/ucx/origin.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "transport/ucx/outgoing.h"

namespace hmc::ucx {

namespace {

constexpr std::chrono::microseconds kSpin{30};
// Looks under one lock: some microseconds, then others get their turn.
constexpr int kBurst = 16;

}  // namespace

Result<std::unique_ptr<Origin>> Origin::create(Context& context, Partings& partings) {
  Fd epoll(epoll_create1(EPOLL_CLOEXEC));
  if (!epoll) return errnoStatus("making an epoll for ucx");
  Fd wake(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake) return errnoStatus("making an eventfd for ucx");
  epoll_event event{};
  event.events = EPOLLIN;
  if (epoll_ctl(epoll.get(), EPOLL_CTL_ADD, wake.get(), &event) != 0) {
    return errnoStatus("watching an eventfd for ucx");
  }
  return std::unique_ptr<Origin>(new Origin(context, partings, std::move(epoll), std::move(wake)));
}

bool Origin::run(Deadline until) {
  auto spinUntil = Clock::time_point::min();
  while (true) {
    {
      std::lock_guard lock(mutex_);
      if (lookBurst()) return true;
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

void Origin::wake() {
  std::lock_guard lock(mutex_);
  wanted_ = true;
  wakeIfAsleep();
}

bool Origin::lookBurst() {
  for (int i = 0; i < kBurst && ended_ == reported_; ++i) {
    for (Outgoing* one : awake_) one->look();
  }
  if (needsTending_) tend();
  const bool ended = ended_ != reported_;
  reported_ = ended_;
  return ended;
}

// True when somebody wants run() to return.
bool Origin::await(Deadline until) {
  {
    std::lock_guard lock(mutex_);
    if (!arm()) return false;
    for (Outgoing* one : all_) until = earlier(until, Deadline(one->timer()));
    sleeping_ = true;
  }
  epoll_event events[64];
  const int count = epoll_wait(epoll_.get(), events, std::size(events), until.leftMs());
  std::lock_guard lock(mutex_);
  sleeping_ = false;
  bool woken = false;
  for (int i = 0; i < count; ++i) {
    auto* one = static_cast<Outgoing*>(events[i].data.ptr);
    if (one == nullptr) {
      eventfd_t ignored;
      woken = eventfd_read(wake_.get(), &ignored) == 0;
    } else if (std::find(all_.begin(), all_.end(), one) != all_.end()) {
      rouse(*one);
    }
  }
  return woken;
}

// False when one of them has something to do already.
bool Origin::arm() {
  std::erase_if(awake_, [](Outgoing* one) { return one->arm(); });
  return awake_.empty();
}

void Origin::rouse(Outgoing& outgoing) {
  if (std::find(awake_.begin(), awake_.end(), &outgoing) == awake_.end()) {
    awake_.push_back(&outgoing);
  }
}

void Origin::wakeIfAsleep() {
  if (sleeping_) eventfd_write(wake_.get(), 1);
}

void Origin::tend() {
  needsTending_ = false;
  for (Outgoing* one : all_) {
    if (!one->tend()) needsTending_ = true;
  }
}

}  // namespace hmc::ucx
