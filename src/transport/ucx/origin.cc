#include "transport/ucx/origin.h"

#include <poll.h>
#include <sys/eventfd.h>

#include "base/error.h"
#include "transport/ucx/outgoing.h"

namespace hmc::ucx {

namespace {

constexpr std::chrono::microseconds kSpin{30};
// Calls of UCX under one lock: some microseconds, then others get their turn.
constexpr int kBurst = 16;
// run() may take the event that finish() waits for: look again soon.
constexpr int kSoonMs = 5;

}  // namespace

Result<std::unique_ptr<Origin>> Origin::create(Context& context) {
  Fd wake(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake) return errnoStatus("making an eventfd for ucx");
  HMC_ASSIGN(auto worker, Worker::create(context));
  return std::unique_ptr<Origin>(new Origin(std::move(worker), std::move(wake)));
}

void Origin::wake() {
  eventfd_write(wake_.get(), 1);
}

bool Origin::run(Deadline until) {
  auto spinUntil = Clock::time_point::min();
  while (true) {
    {
      std::lock_guard lock(mutex_);
      for (int i = 0; i < kBurst && ended_ == reported_; ++i) worker_->progress();
      if (needsTending_) tend();
      if (ended_ != reported_) {
        reported_ = ended_;
        return true;
      }
    }
    const auto now = Clock::now();
    if (now >= until.at()) return false;
    if (spinUntil == Clock::time_point::min()) spinUntil = now + kSpin;
    if (now < spinUntil) continue;
    if (sleep(until)) until = Deadline::now();
    spinUntil = Clock::now() + kSpin;
  }
}

// True when somebody called wake().
bool Origin::sleep(Deadline until) {
  {
    std::lock_guard lock(mutex_);
    if (!worker_->arm()) return false;
    for (Outgoing* one : all_) until = earlier(until, Deadline(one->fenceAt()));
    sleeping_ = true;
  }
  pollfd waiting[] = {{worker_->fd(), POLLIN, 0}, {wake_.get(), POLLIN, 0}};
  poll(waiting, std::size(waiting), until.leftMs());
  std::lock_guard lock(mutex_);
  sleeping_ = false;
  eventfd_t ignored;
  return waiting[1].revents != 0 && eventfd_read(wake_.get(), &ignored) == 0;
}

// With mutex_ held.
void Origin::tend() {
  needsTending_ = false;
  for (Outgoing* one : all_) {
    if (!one->tend()) needsTending_ = true;
  }
}

void Origin::finish(Outgoing& outgoing) {
  while (true) {
    int waitMs = 0;
    {
      std::lock_guard lock(mutex_);
      for (int i = 0; i < kBurst; ++i) worker_->progress();
      if (needsTending_) tend();
      if (outgoing.over()) return;
      if (worker_->arm()) waitMs = Deadline(outgoing.fenceAt()).leftMs(kSoonMs);
    }
    // Nobody may be in run(), and what it wakes for is what we wait for as well.
    pollfd waiting[] = {{worker_->fd(), POLLIN, 0}, {wake_.get(), POLLIN, 0}};
    poll(waiting, std::size(waiting), waitMs);
  }
}

}  // namespace hmc::ucx
