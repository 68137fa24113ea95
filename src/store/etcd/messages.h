#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hmc/result.h"

// What etcd's JSON gateway is told, and what it answers: the messages of etcd's own protocol, with
// bytes in base64 and 64-bit numbers as text. A field that is not there is 0 or empty.
namespace hmc::store::etcd {

// All keys that begin with it, or that one key.
struct Range {
  std::string key;
  std::string end;  // empty: the one key

  static Range of(std::string key) { return {std::move(key), {}}; }
  static Range beginningWith(std::string prefix);
};

std::string rangeRequest(const Range& range);
// Answers with no keys: only asks whether the store is there.
std::string pingRequest(const std::string& key);
std::string putRequest(const std::string& key, std::string_view value, uint64_t lease);
std::string deleteRequest(const Range& range);
std::string grantRequest(uint64_t lease, std::chrono::milliseconds ttl);
std::string leaseRequest(uint64_t lease);  // to keep it alive, or to revoke it
std::string watchRequest(const Range& range, int64_t revision);
std::string authenticateRequest(const std::string& user, const std::string& password);

// A condition of a transaction about one key.
struct Condition {
  static Condition absent(const std::string& key);
  static Condition hasValue(const std::string& key, std::string_view value);
  static Condition hasRevision(const std::string& key, int64_t modRevision);
  static Condition hasLease(const std::string& key, uint64_t lease);
  std::string json;
};
// If the condition holds, puts the value or, without one, deletes the key; if not, asks for the
// key.
std::string txnRequest(const Condition& condition, const std::string& key,
                       std::optional<std::string_view> value, uint64_t lease);

struct KeyValue {
  std::string key;
  std::string value;
  int64_t modRevision = 0;
  uint64_t lease = 0;
};

// Of the store when it answered. One that goes back was put together anew.
struct Position {
  int64_t revision = 0;
  uint64_t term = 0;
};

struct RangeAnswer {
  Position at;
  std::vector<KeyValue> kvs;
};
struct TxnAnswer {
  bool succeeded = false;
  std::optional<KeyValue> found;  // if it did not
};
struct WatchAnswer {
  struct Event {
    bool removed = false;
    KeyValue kv;
  };
  Position at;
  bool created = false;
  bool cancelled = false;
  std::string reason;      // for that
  bool compacted = false;  // the revision is no longer known
  std::vector<Event> events;
};

// Each is `failed` when the answer is not what etcd would say.
Result<RangeAnswer> readRange(std::string_view answer);
Result<TxnAnswer> readTxn(std::string_view answer);
// The seconds that are left of the lease; 0: there is no such lease.
Result<int64_t> readKeepAlive(std::string_view answer);
// One line of the stream. An error of the stream is that error.
Result<WatchAnswer> readWatch(std::string_view line);
Result<std::string> readToken(std::string_view answer);

// An error as etcd words it, with the number that gRPC has for its kind.
struct Refusal {
  static constexpr int kUnknown = 2;
  static constexpr int kInvalidArgument = 3;
  static constexpr int kNotFound = 5;
  static constexpr int kPermissionDenied = 7;
  static constexpr int kExhausted = 8;
  static constexpr int kFailedPrecondition = 9;
  static constexpr int kOutOfRange = 11;
  static constexpr int kUnauthenticated = 16;
  int code = kUnknown;
  std::string message;

  // Another member, or the same a little later, may do it.
  bool isPassing() const;
  // Nothing was done, so even what must not be done twice can be tried again.
  bool isBeforeAnythingWasDone() const;
  // The token is too old, or there is none.
  bool asksForToken() const;
  Status status() const;
};
// What an answer other than 200 says, also where it is no JSON.
Refusal readRefusal(long httpCode, std::string_view answer);

}  // namespace hmc::store::etcd
