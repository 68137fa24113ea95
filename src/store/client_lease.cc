#include "store/client_lease.h"

#include "base/error.h"

namespace hmc::store {

Status ClientLease::status() const {
  std::lock_guard lock(mutex_);
  if (revoked_) return error(Code::cancelled, "the lease was revoked");
  return taken_;
}

bool ClientLease::revoked() const {
  std::lock_guard lock(mutex_);
  return revoked_;
}

void ClientLease::setRevoked() {
  std::lock_guard lock(mutex_);
  revoked_ = true;
  restored_.notify_all();
}

uint64_t ClientLease::made() const {
  std::lock_guard lock(mutex_);
  return made_;
}

bool ClientLease::record(std::string_view key, std::string_view value, uint64_t madeBefore) {
  std::lock_guard lock(mutex_);
  keys_[std::string(key)] = value;
  if (made_ == madeBefore) return false;
  again_ = true;
  server_.clear();
  return true;
}

void ClientLease::forget(std::string_view key) {
  std::lock_guard lock(mutex_);
  const auto found = keys_.find(key);
  if (found != keys_.end()) keys_.erase(found);
}

void ClientLease::forgetAll(std::string_view prefix) {
  std::lock_guard lock(mutex_);
  auto at = keys_.lower_bound(prefix);
  while (at != keys_.end() && at->first.starts_with(prefix)) at = keys_.erase(at);
}

void ClientLease::setGranted(const std::string& server, Deadline::Clock::time_point now) {
  std::lock_guard lock(mutex_);
  due_ = now + ttl_ / 3;
  if (again_) return;
  server_ = server;
  restored_.notify_all();
}

void ClientLease::setLost() {
  std::lock_guard lock(mutex_);
  server_.clear();
}

bool ClientLease::isLost(const std::string& server) const {
  std::lock_guard lock(mutex_);
  return !revoked_ && server_ != server;
}

Deadline::Clock::time_point ClientLease::due() const {
  std::lock_guard lock(mutex_);
  return due_;
}

void ClientLease::setKeptAlive(Deadline::Clock::time_point now) {
  std::lock_guard lock(mutex_);
  due_ = now + ttl_ / 3;
}

std::map<std::string, std::string, std::less<>> ClientLease::keys() const {
  std::lock_guard lock(mutex_);
  return keys_;
}

void ClientLease::restore(LeaseServer& server, Deadline deadline) {
  const auto before = Deadline::Clock::now();
  {
    std::lock_guard lock(mutex_);
    ++made_;
    again_ = false;
  }
  // What fails here is tried again: the server went, or the next round comes.
  if (!reclaim(server, deadline).ok()) return;
  setGranted(server.incarnation(), before);
  // It was revoked meanwhile, perhaps before it was there.
  if (revoked()) server.revoke(*this);
}

Status ClientLease::reclaim(LeaseServer& server, Deadline deadline) {
  HMC_TRY(server.grant(*this, deadline));
  for (const auto& [key, value] : keys()) {
    HMC_ASSIGN(const bool ours, server.claim(*this, key, value, deadline));
    if (ours) continue;
    std::lock_guard lock(mutex_);
    taken_ =
        error(Code::alreadyExists,
              "another process has set the key {} while the store did not know our lease", key);
    keys_.erase(key);
  }
  return Status();
}

Status ClientLease::waitRestored(Deadline deadline) const {
  std::unique_lock lock(mutex_);
  while (server_.empty() && !revoked_) {
    if (deadline.passed()) {
      return error(Code::deadlineExceeded, "the lease was not restored before the deadline");
    }
    restored_.wait_until(lock, deadline.at());
  }
  return Status();
}

}  // namespace hmc::store
