#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

#include "hmc/deadline.h"
#include "hmc/result.h"

namespace hmc::store {

class ClientLease;

// What restoring a lease needs of a server. Each can be repeated.
class LeaseServer {
 public:
  virtual ~LeaseServer() = default;
  virtual const std::string& incarnation() const = 0;
  virtual Status grant(const ClientLease& lease, Deadline deadline) = 0;
  // Sets the key unless it belongs to anybody but this lease: then it answers false.
  virtual Result<bool> claim(const ClientLease& lease, const std::string& key,
                             const std::string& value, Deadline deadline) = 0;
  // Does not wait for the answer.
  virtual void revoke(const ClientLease& lease) = 0;
};

// A lease as its client knows it: its keys, and what is needed to make it again. Its id stays the
// same, so that every request about it can be repeated. Safe from any thread.
class ClientLease {
 public:
  ClientLease(uint64_t id, std::chrono::milliseconds ttl) : id_(id), ttl_(ttl) {}

  uint64_t id() const { return id_; }
  std::chrono::milliseconds ttl() const { return ttl_; }

  // Ok, or the key that somebody else has.
  Status status() const;
  bool revoked() const;
  void setRevoked();

  // What the user did.
  // How often the lease was made; a key that was set under one number and recorded under another
  // may be lost.
  uint64_t made() const;
  // True when it may be lost and the lease must be restored.
  bool record(std::string_view key, std::string_view value, uint64_t madeBefore);
  void forget(std::string_view key);
  void forgetAll(std::string_view prefix);

  // What the connection's thread does.
  void setGranted(const std::string& server, Deadline::Clock::time_point now);
  void setLost();
  // Does it have to be made, here and now?
  bool isLost(const std::string& server) const;
  // When to keep it alive next.
  Deadline::Clock::time_point due() const;
  void setKeptAlive(Deadline::Clock::time_point now);
  // Makes it and sets its keys again, those that nobody else has set.
  void restore(LeaseServer& server, Deadline deadline);
  // Waits until it has been restored.
  Status waitRestored(Deadline deadline) const;

 private:
  std::map<std::string, std::string, std::less<>> keys() const;
  Status reclaim(LeaseServer& server, Deadline deadline);

  const uint64_t id_;
  const std::chrono::milliseconds ttl_;

  mutable std::mutex mutex_;  // guards everything below
  mutable std::condition_variable restored_;
  std::map<std::string, std::string, std::less<>> keys_;
  std::string server_;  // the incarnation that knows it; empty: none
  uint64_t made_ = 0;
  bool again_ = false;  // a key was recorded too late for the last time that it was made
  Deadline::Clock::time_point due_;
  Status taken_;
  bool revoked_ = false;
};

}  // namespace hmc::store
