#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <vector>

#include "base/fd.h"
#include "hmc/result.h"

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

 private:
  friend class ProgressThread;
  struct Watched {
    std::shared_ptr<TransferState> transfer;
    uint64_t id;
  };
  using Entry = std::list<Watched>::iterator;

  explicit CompletionList(Fd event) : event_(std::move(event)) {}
  // By whoever ended the transfer, with a transport's locks held perhaps.
  void arrived(Entry entry);
  void arrivedLocked(Entry entry);

  const Fd event_;
  std::mutex mutex_;  // guards what follows
  std::list<Watched> watched_;
  std::list<Watched> arrived_;
};

}  // namespace hmc
