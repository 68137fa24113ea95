#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "hmc/result.h"
#include "store/store.h"

namespace hmc::store {

// Values are shared, not copied: a list or a watch may hold them after they were replaced.
using Bytes = std::shared_ptr<const std::string>;

struct Record {
  std::string key;
  Bytes value;
};

Status checkKey(std::string_view key);
Status checkPrefix(std::string_view prefix);
Status checkValue(std::string_view value);
Status checkTtl(std::chrono::milliseconds ttl);
// The number in a key's value, and so much more.
Result<int64_t> sumOf(std::string_view key, std::string_view value, int64_t amount);

// Hears of every change that a State must be able to repeat.
class Recorder {
 public:
  virtual ~Recorder() = default;
  virtual void set(std::string_view key, std::string_view value, uint64_t lease) = 0;
  virtual void removed(std::string_view key) = 0;
  virtual void granted(uint64_t lease, std::chrono::milliseconds ttl) = 0;
  virtual void ended(uint64_t lease) = 0;
};

// What a store knows, and nothing else: no thread, no socket, and the time is passed in. The ids of
// leases, awaits and watches are the caller's choice. For one thread at a time.
class State {
 public:
  using Time = std::chrono::steady_clock::time_point;
  static constexpr uint64_t kNoLease = 0;

  struct Limits {
    size_t bytes = size_t{1} << 30;    // of all keys and values
    size_t backlog = size_t{1} << 16;  // changes that a watch has not taken
    size_t backlogBytes = size_t{64} << 20;
    size_t leases = size_t{1} << 20;
  };
  State() = default;
  explicit State(const Limits& limits) : limits_(limits) {}

  // Null when it is not there.
  Bytes get(std::string_view key) const;
  std::vector<Record> list(std::string_view prefix) const;
  // notFound: there is no such lease, here and below.
  Status set(std::string_view key, std::string_view value, uint64_t lease = kNoLease);
  Result<Swap> compareAndSet(std::string_view key, std::optional<std::string_view> expected,
                             std::optional<std::string_view> desired, uint64_t lease = kNoLease);
  // Sets the key unless it belongs to anybody but this lease. Repeating it does no harm.
  Result<Swap> claim(std::string_view key, std::string_view value, uint64_t lease);
  Result<int64_t> add(std::string_view key, int64_t amount);
  Result<uint64_t> append(std::string_view key, std::string_view bytes);
  void remove(std::string_view key);
  void removeAll(std::string_view prefix);
  size_t bytes() const { return bytes_; }

  // Makes the lease, or refreshes it.
  Status grant(uint64_t lease, std::chrono::milliseconds ttl, Time now);
  // False when there is no such lease.
  bool keepAlive(uint64_t lease, Time now);
  void revoke(uint64_t lease);
  // Ends the leases that nobody kept alive.
  void expire(Time now);
  // All leases last longer by that, because nobody could be heard meanwhile.
  void postpone(std::chrono::nanoseconds by);
  std::optional<Time> nextExpiry() const;

  // From now on; null: nobody. It outlives the State, or is taken away before.
  void recordTo(Recorder* recorder) { recorder_ = recorder; }
  // Everything that is there, as if it were set now. Calls `then` after each.
  void tellAll(Recorder& recorder, const std::function<void()>& then) const;

  // The value, or null: then takeWoken() tells when it is there.
  Bytes await(std::string_view key, uint64_t id);
  void forget(uint64_t awaitId);

  struct Event {
    Change::Kind kind;
    std::string key;
    Bytes value;
  };
  void watch(uint64_t id, std::string_view prefix);
  void unwatch(uint64_t id);
  // The next events of a watch: none yet, or at least one and about `most` bytes of them. notFound
  // when the watch is not there, or fell so far behind that it was dropped.
  Result<std::vector<Event>> take(uint64_t watchId, size_t most);
  bool hasEvents(uint64_t watchId) const;

  struct Woken {
    std::vector<std::pair<uint64_t, Bytes>> awaits;
    std::vector<uint64_t> watches;  // that have something to take()
  };
  // Since the last call.
  Woken takeWoken();

 private:
  struct Value {
    Bytes bytes;
    uint64_t lease = kNoLease;
  };
  struct Granted {
    std::chrono::milliseconds ttl;
    Time expiry;
    std::set<std::string, std::less<>> keys;
  };
  struct Watched {
    std::string prefix;
    std::deque<Event> queue;
    size_t inList = 0;  // of the queue's, those that were there when the watch began
    size_t bytes = 0;   // of the others
  };
  using Keys = std::map<std::string, Value, std::less<>>;

  Status put(std::string_view key, std::string bytes, uint64_t lease);
  Keys::iterator erase(Keys::iterator at);
  Status checkLease(uint64_t lease) const;
  void detach(const std::string& key, uint64_t lease);
  void announce(const Event& event);
  void tell(uint64_t watchId, Watched& watched, const Event& event);
  void drop(std::map<uint64_t, Watched>::iterator at);

  const Limits limits_{};
  Keys keys_;
  size_t bytes_ = 0;
  std::map<uint64_t, Granted> leases_;
  std::set<std::pair<Time, uint64_t>> expiries_;
  std::map<uint64_t, std::string> awaits_;
  std::multimap<std::string, uint64_t, std::less<>> awaitedKeys_;
  std::map<uint64_t, Watched> watches_;
  // A change looks up each length of prefix that there is, not each watch.
  std::map<size_t, size_t> prefixLengths_;
  std::map<std::string, std::set<uint64_t>, std::less<>> byPrefix_;
  Woken woken_;
  Recorder* recorder_ = nullptr;
};

}  // namespace hmc::store
