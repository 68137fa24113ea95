#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "base/event_fd.h"
#include "hmc/deadline.h"
#include "transport/verbs/nic.h"

namespace hmc::verbs {

// The completion queues of one NIC for one purpose, behind one descriptor. There are as many as the
// queue pairs need: a queue that overflows would lose completions. Safe from any thread.
class CompletionQueues {
 public:
  static Result<std::unique_ptr<CompletionQueues>> create(const Nic& nic);
  const Nic& nic() const { return nic_; }

  struct Release {
    CompletionQueues* owner;
    int entries;
    void operator()(ibv_cq* queue) const { owner->release(queue, entries); }
  };
  // A queue with room for so many more entries, until this goes.
  using Room = std::unique_ptr<ibv_cq, Release>;
  Result<Room> reserve(int entries);

  // Calls handle(const ibv_wc&) for every completion, with the mutex held: one thread at a time, in
  // order. Answers how many there were.
  template <class Handle>
  size_t poll(Handle&& handle) {
    std::lock_guard lock(mutex_);
    size_t count = 0;
    for (const Queue& queue : queues_) {
      ibv_wc ended[kBatch];
      for (int got = kBatch; got == kBatch;) {
        got = ibv_poll_cq(queue.handle.get(), kBatch, ended);
        for (int i = 0; i < got; ++i) handle(ended[i]);
        count += static_cast<size_t>(got > 0 ? got : 0);
      }
    }
    return count;
  }

  // No completion is handled while the lock is held.
  std::unique_lock<std::mutex> pause() { return std::unique_lock(mutex_); }

  // Keeps alive what a completion may still point to.
  void keep(std::shared_ptr<void> pointedTo);

  // From now on the descriptor becomes readable when something completes. What completed before is
  // not announced: poll() once more.
  void arm();
  // Clears the descriptor.
  void acknowledge();
  int fd() const { return channel_->fd; }

 private:
  static constexpr int kBatch = 16;
  struct Queue {
    Handle<ibv_cq> handle;
    int free;
  };
  CompletionQueues(const Nic& nic, Handle<ibv_comp_channel> channel)
      : nic_(nic), channel_(std::move(channel)) {}
  void release(ibv_cq* queue, int entries);

  const Nic& nic_;
  const Handle<ibv_comp_channel> channel_;
  std::mutex mutex_;
  std::vector<std::shared_ptr<void>> kept_;  // guarded by mutex_
  std::vector<Queue> queues_;                // guarded by mutex_
};

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
  explicit Progress(EventFd wake) : wake_(std::move(wake)) {}
  bool poll();
  bool await(Deadline until);

  std::vector<std::unique_ptr<CompletionQueues>> queues_;
  const EventFd wake_;
};

}  // namespace hmc::verbs
