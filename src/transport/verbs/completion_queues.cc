#include "transport/verbs/completion_queues.h"

#include <fcntl.h>
#include <poll.h>

#include <algorithm>

#include "base/error.h"
#include "transport/verbs/channel.h"

namespace hmc::verbs {

namespace {
// Serves the queue pairs of a dozen peers.
constexpr int kEntries = 16384;
// Longer than a round trip through a NIC, or through soft-RoCE.
constexpr std::chrono::microseconds kSpin{200};
constexpr int kPollsPerClock = 8;
}  // namespace

Result<std::unique_ptr<CompletionQueues>> CompletionQueues::create(const Nic& nic) {
  const Library& library = nic.library();
  Handle<ibv_comp_channel> channel(library.ibv_create_comp_channel(nic.context()),
                                   library.ibv_destroy_comp_channel);
  if (!channel)
    return errnoStatus(fmt::format("creating a completion channel of {}", nic.port().name()));
  fcntl(channel->fd, F_SETFL, fcntl(channel->fd, F_GETFL) | O_NONBLOCK);
  return std::unique_ptr<CompletionQueues>(new CompletionQueues(nic, std::move(channel)));
}

Result<CompletionQueues::Room> CompletionQueues::reserve(int entries) {
  std::lock_guard lock(mutex_);
  for (Queue& queue : queues_) {
    if (queue.free < entries) continue;
    queue.free -= entries;
    return Room(queue.handle.get(), {this, entries});
  }
  const Library& library = nic_.library();
  const int size = std::max(entries, std::min(kEntries, nic_.limits().max_cqe));
  Handle<ibv_cq> made(library.ibv_create_cq(nic_.context(), size, nullptr, channel_.get(), 0),
                      library.ibv_destroy_cq);
  if (!made) {
    return errnoStatus(
        fmt::format("creating a completion queue of {} entries of {}", size, nic_.port().name()));
  }
  // The descriptor is armed for all of them or for none.
  ibv_req_notify_cq(made.get(), 0);
  queues_.push_back({std::move(made), size - entries});
  return Room(queues_.back().handle.get(), {this, entries});
}

void CompletionQueues::release(ibv_cq* queue, int entries) {
  std::lock_guard lock(mutex_);
  for (Queue& one : queues_) {
    if (one.handle.get() == queue) one.free += entries;
  }
}

void CompletionQueues::keep(std::shared_ptr<void> pointedTo) {
  std::lock_guard lock(mutex_);
  kept_.push_back(std::move(pointedTo));
}

void CompletionQueues::arm() {
  std::lock_guard lock(mutex_);
  for (const Queue& queue : queues_) ibv_req_notify_cq(queue.handle.get(), 0);
}

void CompletionQueues::acknowledge() {
  ibv_cq* queue = nullptr;
  void* context = nullptr;
  while (nic_.library().ibv_get_cq_event(channel_.get(), &queue, &context) == 0) {
    nic_.library().ibv_ack_cq_events(queue, 1);
  }
}

Result<std::unique_ptr<Progress>> Progress::create(const Nics& nics) {
  HMC_ASSIGN(EventFd wake, EventFd::create("RDMA"));
  std::unique_ptr<Progress> progress(new Progress(std::move(wake)));
  for (const auto& nic : nics) {
    HMC_ASSIGN(auto made, CompletionQueues::create(*nic));
    progress->queues_.push_back(std::move(made));
  }
  return progress;
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
