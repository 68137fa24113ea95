#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "store/connection.h"
#include "store/watched_keys.h"

namespace hmc::store {

// A watch as its client knows it: the connection that has it, and what its user was told. Safe from
// any thread.
class ClientWatch {
 public:
  ClientWatch(uint64_t id, const std::string& prefix, std::chrono::milliseconds grace, EventFd fd)
      : id_(id), prefix_(prefix), keys_(prefix, grace, std::move(fd)) {}

  WatchedKeys& keys() { return keys_; }

  // False when the channel has the watch already.
  bool begin(const ChannelPtr& channel) {
    std::lock_guard lock(mutex_);
    if (channel_.lock() == channel) return false;
    channel_ = channel;
    const std::string before = std::exchange(server_, channel->peer().id);
    keys_.begin(!before.empty() && before != server_);
    return true;
  }
  Request openRequest() const { return {.op = Op::watch, .id = id_, .key = prefix_}; }
  Request nextRequest() const { return {.op = Op::watchNext, .id = id_}; }
  Request closeRequest() const { return {.op = Op::unwatch, .id = id_}; }
  // Takes what the server said. False when it need not be asked for more: the user has so much to
  // read that the server must wait, or another channel has the watch by now.
  bool take(const ChannelPtr& channel, std::vector<Change> changes) {
    std::lock_guard lock(mutex_);
    return channel_.lock() == channel && keys_.take(std::move(changes));
  }
  // The server has dropped the watch, or it is to be begun again for another reason.
  void setLost() {
    std::lock_guard lock(mutex_);
    channel_.reset();
  }

 private:
  const uint64_t id_;
  const std::string prefix_;
  WatchedKeys keys_;

  std::mutex mutex_;                // guards everything below
  std::weak_ptr<Channel> channel_;  // that has the watch
  std::string server_;              // the incarnation that has it
};

}  // namespace hmc::store
