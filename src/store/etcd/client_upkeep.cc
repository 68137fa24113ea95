#include <algorithm>
#include <utility>

#include "base/error.h"
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

}  // namespace

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

Result<std::string> EtcdClient::make(const ClientLease& lease, Deadline deadline) {
  HMC_TRY(grant(lease, deadline));
  return incarnation();
}

Status EtcdClient::end(const ClientLease& lease, Deadline deadline) {
  Status revoked =
      gateway_->call(kRevoke, leaseRequest(lease.id()), Repeat::yes, deadline).status();
  return revoked.code() == Code::notFound ? Status() : revoked;
}

bool EtcdClient::holds(const ClientLease& lease) const {
  return gateway_->inReach() && !lease.isLost(incarnation());
}

Result<std::unique_ptr<Watch>> EtcdClient::watch(std::string_view prefix) {
  HMC_TRY(checkPrefix(prefix));
  if (forked()) return ForkGuard::refusal();
  HMC_ASSIGN(EventFd fd, EventFd::create("a watch of the store"));
  auto made = std::make_shared<KeyWatch>(*gateway_, std::string(prefix), grace_, std::move(fd),
                                         [this] { wake(); });
  {
    std::lock_guard lock(mutex_);
    watches_.push_back(made);
  }
  wake();
  return std::unique_ptr<Watch>(
      new Watching(std::static_pointer_cast<EtcdClient>(shared_from_this()), std::move(made)));
}

void EtcdClient::drop(const WatchPtr& watch) {
  if (forked()) return;
  watch->close();
  std::lock_guard lock(mutex_);
  watches_.erase(std::remove(watches_.begin(), watches_.end(), watch), watches_.end());
}

}  // namespace hmc::store::etcd
