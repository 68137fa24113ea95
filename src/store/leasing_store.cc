#include "store/leasing_store.h"

#include <utility>

#include "base/error.h"
#include "base/random.h"
#include "store/state.h"

namespace hmc::store {

namespace {

// Positive: etcd's are signed.
uint64_t newLeaseId() {
  for (;;) {
    if (const uint64_t id = randomU64() >> 1; id != State::kNoLease) return id;
  }
}

const Status& statusOf(const Status& status) {
  return status;
}

template <class T>
Status statusOf(const Result<T>& result) {
  return result.status();
}

}  // namespace

class LeasingStore::Handle final : public KeyLease {
 public:
  Handle(std::shared_ptr<LeasingStore> store, LeasePtr lease)
      : store_(std::move(store)), lease_(std::move(lease)) {}
  ~Handle() override { store_->drop(this, *lease_); }

  Status status() const override {
    HMC_TRY(lease_->status());
    if (store_->holds(*lease_)) return Status();
    return error(Code::disconnected,
                 "the store is out of reach, or has yet to make the lease again");
  }
  Status revoke(Deadline deadline) override { return store_->revoke(this, *lease_, deadline); }

 private:
  const std::shared_ptr<LeasingStore> store_;
  const LeasePtr lease_;
};

Status LeasingStore::set(std::string_view key, std::string_view value, Deadline deadline,
                         const std::shared_ptr<KeyLease>& lease) {
  HMC_TRY(checkKey(key));
  HMC_TRY(checkValue(value));
  HMC_ASSIGN(const LeasePtr held, known(lease));
  const uint64_t made = held ? held->made() : 0;
  HMC_TRY(under(held, deadline, [&](uint64_t id) { return put(key, value, id, deadline); }));
  record(held, key, value, made);
  return Status();
}

Result<Swap> LeasingStore::compareAndSet(std::string_view key,
                                         std::optional<std::string_view> expected,
                                         std::optional<std::string_view> desired, Deadline deadline,
                                         const std::shared_ptr<KeyLease>& lease) {
  HMC_TRY(checkKey(key));
  HMC_TRY(checkValue(expected.value_or("")));
  HMC_TRY(checkValue(desired.value_or("")));
  HMC_ASSIGN(const LeasePtr held, known(lease));
  const uint64_t made = held ? held->made() : 0;
  HMC_ASSIGN(Swap swapped, under(held, deadline, [&](uint64_t id) {
               return swap(key, expected, desired, id, deadline);
             }));
  if (swapped.done) record(desired ? held : nullptr, key, desired.value_or(""), made);
  return swapped;
}

// The leases forget a key first, so that one that is restored meanwhile does not bring it back.
Status LeasingStore::remove(std::string_view key, Deadline deadline) {
  HMC_TRY(checkKey(key));
  for (const LeasePtr& lease : leases()) lease->forget(key);
  return erase(key, deadline);
}

Status LeasingStore::removeAll(std::string_view prefix, Deadline deadline) {
  HMC_TRY(checkPrefix(prefix));
  for (const LeasePtr& lease : leases()) lease->forgetAll(prefix);
  return eraseAll(prefix, deadline);
}

Result<std::shared_ptr<KeyLease>> LeasingStore::lease(std::chrono::milliseconds ttl,
                                                      Deadline deadline) {
  HMC_TRY(checkTtl(ttl));
  auto made = std::make_shared<ClientLease>(newLeaseId(), ttl);
  const auto before = Deadline::Clock::now();
  HMC_ASSIGN(const std::string maker, make(*made, deadline));
  made->setGranted(maker, before);
  auto handle = std::make_shared<Handle>(shared_from_this(), made);
  {
    std::lock_guard lock(mutex_);
    leases_.emplace(handle.get(), std::move(made));
  }
  wake();
  return std::shared_ptr<KeyLease>(std::move(handle));
}

template <class Request>
auto LeasingStore::under(const LeasePtr& lease, Deadline deadline, Request request)
    -> decltype(request(uint64_t{})) {
  for (;;) {
    if (lease && lease->revoked()) return lease->status();
    auto answer = request(lease ? lease->id() : State::kNoLease);
    // The one thing that such a request does not find is its lease.
    if (!lease || statusOf(answer).code() != Code::notFound) return answer;
    lease->setLost();
    wake();
    HMC_TRY(lease->waitRestored(deadline));
  }
}

void LeasingStore::record(const LeasePtr& lease, std::string_view key, std::string_view value,
                          uint64_t made) {
  for (const LeasePtr& other : leases()) {
    if (other != lease) other->forget(key);
  }
  if (lease && lease->record(key, value, made)) wake();
}

std::vector<LeasingStore::LeasePtr> LeasingStore::leases() const {
  std::lock_guard lock(mutex_);
  std::vector<LeasePtr> all;
  all.reserve(leases_.size());
  for (const auto& [handle, lease] : leases_) all.push_back(lease);
  return all;
}

Result<LeasingStore::LeasePtr> LeasingStore::known(const std::shared_ptr<KeyLease>& lease) const {
  if (!lease) return LeasePtr();
  std::lock_guard lock(mutex_);
  const auto found = leases_.find(lease.get());
  if (found != leases_.end()) return found->second;
  return error(Code::invalidArgument, "the lease is not one of this store, or was revoked");
}

Status LeasingStore::revoke(const KeyLease* handle, ClientLease& lease, Deadline deadline) {
  lease.setRevoked();
  HMC_TRY(end(lease, deadline));
  forget(handle);
  return Status();
}

void LeasingStore::drop(const KeyLease* handle, ClientLease& lease) {
  if (forked()) return;
  lease.setRevoked();
  if (forget(handle)) endLater(lease);
}

bool LeasingStore::forget(const KeyLease* handle) {
  std::lock_guard lock(mutex_);
  return leases_.erase(handle) == 1;
}

}  // namespace hmc::store
