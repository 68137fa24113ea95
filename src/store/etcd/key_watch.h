#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "store/back_off.h"
#include "store/etcd/gateway.h"
#include "store/watched_keys.h"

namespace hmc::store::etcd {

// A watch: a list of what is there, and a stream of what changes after it. A stream that breaks is
// opened again where it ended; where etcd no longer knows that, the list is asked for again and the
// differences are told. Safe from any thread.
class KeyWatch : public std::enable_shared_from_this<KeyWatch> {
 public:
  // `wake` asks for maintain(), from any thread. The gateway must outlive all calls of ours.
  KeyWatch(Gateway& gateway, const std::string& prefix, std::chrono::milliseconds grace, EventFd fd,
           std::function<void()> wake);

  WatchedKeys& keys() { return keys_; }
  // The user has read what kept the store waiting.
  void resume();
  void close();

  // Opens the stream if there is none; waits for answers. For one thread. When to call it again.
  Deadline maintain();

 private:
  using Clock = Deadline::Clock;
  bool hasStream();  // of the member in use; another member's is ended
  Status open();
  Status list();
  void startStream(const Gateway::Member& member);
  bool take(uint64_t stream, const WatchAnswer& answer);
  void end(uint64_t stream, const Gateway::Member& member, Deadline renewal, const Status& why);
  Change changeOf(bool removed, const KeyValue& kv) const;

  Gateway& gateway_;
  const Range range_;
  const std::function<void()> wake_;
  WatchedKeys keys_;

  std::mutex mutex_;              // guards everything below
  std::optional<Position> told_;  // up to there
  bool mustList_ = true;
  bool paused_ = false;
  bool closed_ = false;
  uint64_t lastStream_ = 0;
  uint64_t stream_ = 0;    // 0: none
  uint64_t exchange_ = 0;  // the stream's
  uint64_t breaks_ = 0;    // of the gateway, when the stream began
  BackOff backOff_;
  Clock::time_point notBefore_;
};

}  // namespace hmc::store::etcd
