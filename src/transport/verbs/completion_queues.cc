#include "transport/verbs/completion_queues.h"

#include <fcntl.h>

#include <algorithm>

#include "base/error.h"

namespace hmc::verbs {

namespace {
// Serves the queue pairs of a dozen peers.
constexpr int kEntries = 16384;
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

Result<ibv_cq*> CompletionQueues::reserve(int entries) {
  std::lock_guard lock(mutex_);
  for (Queue& queue : queues_) {
    if (queue.free < entries) continue;
    queue.free -= entries;
    return queue.handle.get();
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
  return queues_.back().handle.get();
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

}  // namespace hmc::verbs
