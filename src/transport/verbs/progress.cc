#include "transport/verbs/progress.h"

#include <poll.h>

namespace hmc::verbs {

namespace {
// Longer than a round trip through a NIC, or through soft-RoCE.
constexpr std::chrono::microseconds kSpin{200};
constexpr int kPollsPerClock = 8;
}  // namespace

Result<std::unique_ptr<Progress>> Progress::create(const Nics& nics) {
  std::vector<std::unique_ptr<CompletionQueues>> queues;
  for (const auto& nic : nics) {
    HMC_ASSIGN(auto made, CompletionQueues::create(*nic));
    queues.push_back(std::move(made));
  }
  HMC_ASSIGN(EventFd wake, EventFd::create("RDMA"));
  return std::unique_ptr<Progress>(new Progress(std::move(queues), std::move(wake)));
}

bool Progress::poll() {
  size_t count = 0;
  for (const auto& queues : queues_) count += queues->poll(Channel::handle);
  return count > 0;
}

bool Progress::run(Deadline until) {
  if (poll()) return true;
  const auto spinUntil = Deadline::Clock::now() + kSpin;
  do {
    for (int i = 0; i < kPollsPerClock; ++i) {
      if (poll()) return true;
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
  // What ended between the last poll and the arming is not announced.
  if (poll()) return true;
  ::poll(waiting.data(), waiting.size(), until.leftMs());
  if (waiting[0].revents != 0) wake_.clear();
  for (size_t i = 0; i < queues_.size(); ++i) {
    if (waiting[i + 1].revents != 0) queues_[i]->acknowledge();
  }
  return poll();
}

}  // namespace hmc::verbs
