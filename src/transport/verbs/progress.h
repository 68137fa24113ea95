#pragma once

#include <vector>

#include "base/event_fd.h"
#include "transport/verbs/channel.h"

namespace hmc::verbs {

// Where the thread in Transport::progress() waits for completions. One thread runs it at a time;
// the rest is safe from any thread.
class Progress {
 public:
  static Result<std::unique_ptr<Progress>> create(const Nics& nics);

  // The queues for operations on that NIC.
  CompletionQueues& queues(size_t nic) { return *queues_[nic]; }

  bool run(Deadline until);
  // Lets run() return.
  void wake() { wake_.signal(); }

 private:
  Progress(std::vector<std::unique_ptr<CompletionQueues>> queues, EventFd wake)
      : queues_(std::move(queues)), wake_(std::move(wake)) {}
  bool poll();
  bool await(Deadline until);

  const std::vector<std::unique_ptr<CompletionQueues>> queues_;
  const EventFd wake_;
};

}  // namespace hmc::verbs
