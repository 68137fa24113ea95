#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/event_fd.h"
#include "hmc/deadline.h"
#include "hmc/result.h"
#include "store/store.h"

namespace hmc::store {

// What a watch has told its user, so that one that had to begin anew goes on with the differences.
// Safe from any thread.
class WatchedKeys {
 public:
  WatchedKeys(std::string prefix, std::chrono::milliseconds grace, EventFd fd)
      : prefix_(std::move(prefix)), grace_(grace), fd_(std::move(fd)) {}

  // The user's side. `resume` says that the store may be asked for more again.
  Result<std::vector<Change>> next(Deadline deadline, bool& resume);
  int fd() const { return fd_.get(); }

  // The store's side. After begin() the store tells what is there, up to `current`. `forgotten`: it
  // is not the store that told us before, or has lost its memory.
  void begin(bool forgotten);
  // Takes what the store said. False when the user has so much to read that the store must wait.
  bool take(std::vector<Change> changes);
  // The store refuses the watch; next() says so.
  void fail(const Status& why);

  // After a store that lost its memory came: keys that nobody has set again by then are removed.
  Deadline giveUpOrphans();
  bool hasOrphans();

 private:
  void apply(Change change);
  void finishList();
  void push(Change change);

  const std::string prefix_;
  const std::chrono::milliseconds grace_;
  const EventFd fd_;

  std::mutex mutex_;  // guards everything below
  std::condition_variable changed_;
  std::deque<Change> queue_;
  size_t queuedBytes_ = 0;
  bool paused_ = false;
  Status failed_;
  std::map<std::string, std::string> known_;     // what the user knows, once it has read the queue
  std::optional<std::set<std::string>> listed_;  // while the store tells what is there
  bool current_ = false;                         // the user has heard so
  bool forgotten_ = false;                       // the store is not the one that told us
  std::set<std::string> orphans_;                // known, and not there in the new store
  std::optional<Deadline> patience_;             // for those
};

}  // namespace hmc::store
