#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <vector>

#include "base/event_fd.h"
#include "base/fork_guard.h"
#include "transport/completion.h"

namespace hmc {

class TransferState;

// The transfers that an event loop watches, and which of them are done. Holds them until they are
// taken, so that their last handle never goes in a thread of ours, which could not end itself. Safe
// from any thread; nobody else uses it while it is destroyed.
class CompletionList {
 public:
  static Result<std::unique_ptr<CompletionList>> create();
  ~CompletionList();
  CompletionList(const CompletionList&) = delete;
  CompletionList& operator=(const CompletionList&) = delete;

  // Readable while take() has something to answer.
  int fd() const { return event_.get(); }
  // Null for a transfer that was done when it was started.
  Status watch(std::shared_ptr<TransferState> transfer, uint64_t id);
  std::vector<uint64_t> take();

  bool inChild() const { return fork_.inChild(); }

 private:
  // One transfer, until it is taken. Hears of its end from whoever ended it.
  struct Watched final : CompletionObserver {
    Watched(CompletionList& where, std::shared_ptr<TransferState> what, uint64_t userId)
        : list(where), transfer(std::move(what)), id(userId) {}
    void onComplete(uint64_t, Code) override { list.onDone(*this); }

    CompletionList& list;
    const std::shared_ptr<TransferState> transfer;
    const uint64_t id;  // the user's
    std::list<Watched>::iterator self;
  };

  explicit CompletionList(EventFd event) : event_(std::move(event)) {}
  void onDone(const Watched& one);

  const ForkGuard fork_;
  const EventFd event_;
  std::mutex mutex_;  // guards what follows
  std::list<Watched> watched_;
  std::list<Watched> done_;
};

}  // namespace hmc
