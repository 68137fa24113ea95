#include "transport/verbs/progress.h"

#include <poll.h>
#include <sys/eventfd.h>

#include "base/error.h"

namespace hmc::verbs {

namespace {
// Longer than a round trip through a NIC, or through soft-RoCE.
constexpr std::chrono::microseconds kSpin{200};
constexpr int kLooksPerClock = 8;
}  // namespace

Result<std::unique_ptr<Progress>> Progress::create(const Nics& nics) {
  HMC_ASSIGN(auto queues, CompletionQueues::createAll(nics));
  Fd wake(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake) return errnoStatus("making an eventfd for RDMA");
  return std::unique_ptr<Progress>(new Progress(std::move(queues), std::move(wake)));
}

void Progress::wake() {
  eventfd_write(wake_.get(), 1);
}

size_t Progress::poll() {
  size_t count = 0;
  for (const auto& queues : queues_) count += queues->poll(Channel::handle);
  return count;
}

bool Progress::run(Deadline until) {
  if (poll() > 0) return true;
  const auto spinUntil = Deadline::Clock::now() + kSpin;
  do {
    for (int i = 0; i < kLooksPerClock; ++i) {
      if (poll() > 0) return true;
    }
    if (until.passed()) return false;
  } while (Deadline::Clock::now() < spinUntil);
  return await(until);
}

bool Progress::await(Deadline until) {
  std::vector<pollfd> waiting{{wake_.get(), POLLIN, 0}};
  for (const auto& queues : queues_) {
    queues->arm();
    waiting.push_back({queues->fd(), POLLIN, 0});
  }
  // What ended between the last look and the arming is not announced.
  if (poll() > 0) return true;
  ::poll(waiting.data(), waiting.size(), until.leftMs());
  eventfd_t ignored;
  if (waiting[0].revents != 0) eventfd_read(wake_.get(), &ignored);
  for (size_t i = 0; i < queues_.size(); ++i) {
    if (waiting[i + 1].revents != 0) queues_[i]->acknowledge();
  }
  return poll() > 0;
}

}  // namespace hmc::verbs
