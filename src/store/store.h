#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "base/interface.h"
#include "hmc/deadline.h"
#include "hmc/result.h"
#include "hmc/tls.h"

namespace hmc::store {

inline constexpr size_t kLargestKey = 1024;
inline constexpr size_t kLargestValue = size_t{8} << 20;

struct Entry {
  std::string key;
  std::string value;
};

// What happened to a key that is watched.
struct Change {
  enum class Kind : uint8_t {
    set,
    removed,
    current,  // everything that was there when the watch began has been told; no key
  };
  Kind kind;
  Entry entry;  // the value is empty for `removed`
};

// Keys that begin with one prefix: first those that are there, then each change, in order. When the
// store was out of reach, it goes on with the differences; values that came and went meanwhile are
// left out. Safe from any thread.
class Watch : public Interface {
 public:
  // At least one change, waiting for it. deadlineExceeded when none came.
  virtual Result<std::vector<Change>> next(Deadline deadline) = 0;
  // For poll(2) and its kin: readable while next() would return at once. Stays the Watch's.
  virtual int fd() const = 0;
};

// Keys that vanish with their owner. The store's client keeps it alive; when the client is silent
// for `ttl`, or this is destroyed, the keys are removed. When the store has lost the lease (it was
// restarted, or out of reach for longer), the client makes a new one and sets again those keys that
// nobody else has set meanwhile. Safe from any thread.
class KeyLease : public Interface {
 public:
  // Ok while all of its keys are there as far as we know; alreadyExists when another process has
  // set one of them meanwhile; disconnected while the store is out of reach.
  virtual Status status() const = 0;
  // Removes the keys now. The destructor does the same without waiting for the answer.
  virtual Status revoke(Deadline deadline) = 0;
};

struct Swap {
  bool done = false;
  std::optional<std::string> found;  // the value before, if there was one
};

// Where processes that know one address find each other: a small key-value service. Every call
// waits until the deadline for the store to be in reach. A call that ended with deadlineExceeded or
// disconnected may have been carried out. Safe from any thread.
class Store : public Interface {
 public:
  // notFound when it is not there.
  virtual Result<std::string> get(std::string_view key, Deadline deadline) = 0;
  // Waits for it to be there. `stop` ends that with cancelled.
  virtual Result<std::string> await(std::string_view key, Deadline deadline,
                                    const std::stop_token& stop = {}) = 0;
  // All that begin with the prefix, sorted by key, as of one moment.
  virtual Result<std::vector<Entry>> list(std::string_view prefix, Deadline deadline) = 0;

  // With a lease of this store the key goes when the lease does.
  virtual Status set(std::string_view key, std::string_view value, Deadline deadline,
                     const std::shared_ptr<KeyLease>& lease = nullptr) = 0;
  // Sets the key if its value is `expected`; none means that it is not there. No `desired` removes
  // it. Not repeated when its answer is lost: that is `disconnected`.
  virtual Result<Swap> compareAndSet(std::string_view key, std::optional<std::string_view> expected,
                                     std::optional<std::string_view> desired, Deadline deadline,
                                     const std::shared_ptr<KeyLease>& lease = nullptr) = 0;
  // A number in decimal, 0 when the key is not there. Answers the sum. Not repeated, either.
  virtual Result<int64_t> add(std::string_view key, int64_t amount, Deadline deadline) = 0;
  // Answers the new size. Not repeated, either.
  virtual Result<uint64_t> append(std::string_view key, std::string_view bytes,
                                  Deadline deadline) = 0;
  // Ok when it is not there.
  virtual Status remove(std::string_view key, Deadline deadline) = 0;
  virtual Status removeAll(std::string_view prefix, Deadline deadline) = 0;

  virtual Result<std::unique_ptr<Watch>> watch(std::string_view prefix) = 0;
  virtual Result<std::shared_ptr<KeyLease>> lease(std::chrono::milliseconds ttl,
                                                  Deadline deadline) = 0;
};

struct StoreOptions {
  // The server's. Of an etcd, the password of the URL's user, unless HMC_ETCD_PASSWORD has it.
  std::string secret;
  // When a server was restarted and has lost its memory, other clients set the keys of their leases
  // again. Watches report a key as removed when that did not happen within this time.
  std::chrono::milliseconds grace{5000};
  // Where it is required, an etcd must be an etcds.
  TlsOptions tls{};
  // Ends openStore() with cancelled while it waits for a server. That of an etcd goes on.
  std::stop_token stop{};
};

// "tcp://10.0.0.1:7000", "tcp://[::1]:7000", "unix:///run/store.sock": a Server, see server.h.
// "etcd://10.0.0.1:2379,10.0.0.2:2379", "etcds://..." with TLS: an etcd, see etcd/address.h.
// Returns when the store has answered.
Result<std::shared_ptr<Store>> openStore(const std::string& url, const StoreOptions& options,
                                         Deadline deadline);

}  // namespace hmc::store
