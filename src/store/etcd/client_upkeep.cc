#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/random.h"
#include "store/etcd/client.h"
#include "store/state.h"

// How a client keeps its leases and watches, whichever member serves.

namespace hmc::store::etcd {

namespace {

constexpr const char* kGrant = "/v3/lease/grant";
constexpr const char* kKeepAlive = "/v3/lease/keepalive";
constexpr const char* kRevoke = "/v3/lease/revoke";

// How long the thread waits for one answer about a lease.
constexpr std::chrono::seconds kLeasePatience{5};
constexpr std::chrono::milliseconds kRetry{100};
// For revokes that nobody waits for, when the client goes.
constexpr std::chrono::seconds kFarewell{2};

// Positive: etcd has signed ones.
uint64_t newLeaseId() {
  for (;;) {
    if (const uint64_t id = randomU64() >> 1; id != State::kNoLease) return id;
  }
}

}  // namespace

class EtcdClient::Lease final : public KeyLease {
 public:
  Lease(std::shared_ptr<EtcdClient> client, LeasePtr lease)
      : client_(std::move(client)), lease_(std::move(lease)) {}
  ~Lease() override { client_->drop(this, *lease_); }

  Status status() const override { return client_->statusOf(*lease_); }
  Status revoke(Deadline deadline) override { return client_->revoke(this, *lease_, deadline); }

 private:
  const std::shared_ptr<EtcdClient> client_;
  const LeasePtr lease_;
};

class EtcdClient::Watching final : public Watch {
 public:
  Watching(std::shared_ptr<EtcdClient> client, WatchPtr watch)
      : client_(std::move(client)), watch_(std::move(watch)) {}
  ~Watching() override { client_->drop(watch_); }

  Result<std::vector<Change>> next(Deadline deadline) override {
    if (client_->gateway_->fork().inChild()) return ForkGuard::refusal();
    bool resume = false;
    auto changes = watch_->keys().next(deadline, resume);
    if (resume) watch_->resume();
    return changes;
  }
  int fd() const override { return watch_->keys().fd(); }

 private:
  const std::shared_ptr<EtcdClient> client_;
  const WatchPtr watch_;
};

EtcdClient::~EtcdClient() {
  if (!gateway_) return;
  // In a child its threads are not there: what they wait on cannot be destroyed.
  if (gateway_->fork().inChild()) {
    (void)gateway_.release();
    (void)keeper_.release();
    return;
  }
  {
    std::unique_lock lock(keeper_->mutex);
    keeper_->changed.wait_until(lock, Deadline(kFarewell).at(),
                                [this] { return keeper_->revoking == 0; });
    keeper_->ending = true;
    keeper_->changed.notify_all();
  }
  // The threads use all the rest, gateway_ as well.
  gateway_->close();
  if (keeper_->thread.joinable()) keeper_->thread.join();
}

void EtcdClient::wake() {
  std::lock_guard lock(keeper_->mutex);
  keeper_->woken = true;
  keeper_->changed.notify_all();
}

void EtcdClient::serve() {
  for (;;) {
    const Deadline next = maintain();
    std::unique_lock lock(keeper_->mutex);
    keeper_->changed.wait_until(lock, next.at(),
                                [this] { return keeper_->woken || keeper_->ending; });
    if (keeper_->ending) return;
    keeper_->woken = false;
  }
}

// Leases come first: a watch that lists anew shall find our own keys.
Deadline EtcdClient::maintain() {
  Deadline next = maintainLeases();
  std::vector<WatchPtr> watches;
  {
    std::lock_guard lock(mutex_);
    watches = watches_;
  }
  for (const WatchPtr& watch : watches) next = earlier(next, watch->maintain());
  return next;
}

Deadline EtcdClient::maintainLeases() {
  // An etcd that we were cut off from may have ended them meanwhile.
  const uint64_t breaks = gateway_->breaks();
  const bool anew = std::exchange(maintained_, breaks) != breaks;
  Deadline next = Deadline::never();
  for (const LeasePtr& lease : leases()) {
    if (lease->revoked()) continue;
    const bool due = anew || lease->due() <= Deadline::Clock::now();
    if (due && !keepAlive(*lease).ok()) return kRetry;
    if (lease->isLost(incarnation())) lease->restore(*this, kLeasePatience);
    next = earlier(next, lease->isLost(incarnation()) ? kRetry : Deadline(lease->due()));
  }
  return next;
}

Status EtcdClient::keepAlive(ClientLease& lease) {
  const auto now = Deadline::Clock::now();
  // Soon enough for another member to be asked.
  const auto attempt = std::clamp<std::chrono::milliseconds>(
      lease.ttl() / 4, std::chrono::milliseconds(500), Gateway::kAttempt);
  HMC_ASSIGN(const std::string answer, gateway_->call(kKeepAlive, leaseRequest(lease.id()),
                                                      Repeat::yes, kLeasePatience, attempt));
  HMC_ASSIGN(const int64_t left, readKeepAlive(answer));
  lease.setKeptAlive(now);
  if (left <= 0) lease.setLost();
  return Status();
}

const std::string& EtcdClient::incarnation() const {
  // All members have the same leases. One that etcd has lost is seen when it is to be kept alive.
  static const std::string all = "etcd";
  return all;
}

Status EtcdClient::grant(const ClientLease& lease, Deadline deadline) {
  const std::string request = grantRequest(lease.id(), lease.ttl());
  Status granted = gateway_->call(kGrant, request, Repeat::yes, deadline).status();
  // It is there already; make it last.
  if (granted.code() != Code::alreadyExists) return granted;
  return gateway_->call(kKeepAlive, leaseRequest(lease.id()), Repeat::yes, deadline).status();
}

Result<bool> EtcdClient::claim(const ClientLease& lease, const std::string& key,
                               const std::string& value, Deadline deadline) {
  const std::string name = full(key);
  HMC_ASSIGN(const TxnAnswer fresh,
             transact(Condition::absent(name), name, value, lease.id(), deadline));
  if (fresh.succeeded) return true;
  // It belongs to another, or is ours, with this value or an older one.
  if (!fresh.found || fresh.found->lease != lease.id()) return false;
  if (fresh.found->value == value) return true;
  HMC_ASSIGN(const TxnAnswer changed,
             transact(Condition::hasLease(name, lease.id()), name, value, lease.id(), deadline));
  return changed.succeeded;
}

void EtcdClient::revoke(const ClientLease& lease) {
  {
    std::lock_guard lock(keeper_->mutex);
    ++keeper_->revoking;
  }
  gateway_->post(kRevoke, leaseRequest(lease.id()), kLeasePatience, [this] {
    std::lock_guard lock(keeper_->mutex);
    --keeper_->revoking;
    keeper_->changed.notify_all();
  });
}

Result<std::shared_ptr<KeyLease>> EtcdClient::lease(std::chrono::milliseconds ttl,
                                                    Deadline deadline) {
  HMC_TRY(checkTtl(ttl));
  auto made = std::make_shared<ClientLease>(newLeaseId(), ttl);
  const auto before = Deadline::Clock::now();
  HMC_TRY(grant(*made, deadline));
  made->setGranted(incarnation(), before);
  auto handle = std::make_shared<Lease>(shared_from_this(), made);
  {
    std::lock_guard lock(mutex_);
    leases_.emplace(handle.get(), std::move(made));
  }
  wake();
  return std::shared_ptr<KeyLease>(std::move(handle));
}

Result<std::string> EtcdClient::callWith(const LeasePtr& lease, const char* path,
                                         const std::string& body, Repeat repeat,
                                         Deadline deadline) {
  for (;;) {
    if (lease && lease->revoked()) return lease->status();
    auto answer = gateway_->call(path, body, repeat, deadline);
    // The one thing that such a request does not find is its lease.
    if (!lease || answer.status().code() != Code::notFound) return answer;
    lease->setLost();
    wake();
    HMC_TRY(lease->waitRestored(deadline));
  }
}

void EtcdClient::record(const LeasePtr& lease, std::string_view key, std::string_view value,
                        uint64_t made) {
  for (const LeasePtr& other : leases()) {
    if (other != lease) other->forget(key);
  }
  if (lease && lease->record(key, value, made)) wake();
}

std::vector<EtcdClient::LeasePtr> EtcdClient::leases() const {
  std::lock_guard lock(mutex_);
  std::vector<LeasePtr> all;
  all.reserve(leases_.size());
  for (const auto& [handle, lease] : leases_) all.push_back(lease);
  return all;
}

Result<EtcdClient::LeasePtr> EtcdClient::known(const std::shared_ptr<KeyLease>& lease) const {
  if (!lease) return LeasePtr();
  std::lock_guard lock(mutex_);
  const auto found = leases_.find(lease.get());
  if (found != leases_.end()) return found->second;
  return error(Code::invalidArgument, "the lease is not one of this store, or was revoked");
}

Status EtcdClient::statusOf(const ClientLease& lease) const {
  HMC_TRY(lease.status());
  if (gateway_->inReach() && !lease.isLost(incarnation())) return Status();
  return error(Code::disconnected, "the store is out of reach, or has yet to make the lease again");
}

Status EtcdClient::revoke(const Lease* handle, ClientLease& lease, Deadline deadline) {
  lease.setRevoked();
  Status revoked =
      gateway_->call(kRevoke, leaseRequest(lease.id()), Repeat::yes, deadline).status();
  if (!revoked.ok() && revoked.code() != Code::notFound) return revoked;
  std::lock_guard lock(mutex_);
  leases_.erase(handle);
  return Status();
}

void EtcdClient::drop(const Lease* handle, ClientLease& lease) {
  if (gateway_->fork().inChild()) return;
  lease.setRevoked();
  {
    std::lock_guard lock(mutex_);
    if (leases_.erase(handle) == 0) return;  // it was revoked
  }
  revoke(lease);
}

Result<std::unique_ptr<Watch>> EtcdClient::watch(std::string_view prefix) {
  HMC_TRY(checkPrefix(prefix));
  if (gateway_->fork().inChild()) return ForkGuard::refusal();
  HMC_ASSIGN(EventFd fd, EventFd::create("a watch of the store"));
  auto made = std::make_shared<KeyWatch>(*gateway_, std::string(prefix), grace_, std::move(fd),
                                         [this] { wake(); });
  {
    std::lock_guard lock(mutex_);
    watches_.push_back(made);
  }
  wake();
  return std::unique_ptr<Watch>(new Watching(shared_from_this(), std::move(made)));
}

void EtcdClient::drop(const WatchPtr& watch) {
  if (gateway_->fork().inChild()) return;
  watch->close();
  std::lock_guard lock(mutex_);
  watches_.erase(std::remove(watches_.begin(), watches_.end(), watch), watches_.end());
}

}  // namespace hmc::store::etcd
