#include "store/memory_store.h"

#include <condition_variable>
#include <map>
#include <mutex>
#include <set>
#include <utility>

#include "base/error.h"
#include "base/event_fd.h"
#include "store/state.h"

namespace hmc::store {

namespace {

struct Waiter {
  std::condition_variable changed;
  Bytes value;                // of an await
  std::optional<EventFd> fd;  // of a watch, once somebody asked for it
};

// What all clients share.
struct Memory {
  std::mutex mutex;  // guards everything below
  State state;
  uint64_t lastId = 0;
  uint64_t requests = 0;
  MemoryStore::Delivered delivered;
  std::map<uint64_t, Waiter*> waiters;  // by the id of their await or watch
};

class MemoryClient;

class MemoryLease final : public KeyLease {
 public:
  MemoryLease(std::shared_ptr<MemoryClient> client, uint64_t id)
      : client_(std::move(client)), id_(id) {}
  ~MemoryLease() override { (void)revoke(Deadline::now()); }
  Status status() const override;
  Status revoke(Deadline) override;

 private:
  const std::shared_ptr<MemoryClient> client_;
  const uint64_t id_;
};

class MemoryWatch final : public Watch {
 public:
  MemoryWatch(std::shared_ptr<Memory> memory, std::string_view prefix);
  ~MemoryWatch() override;
  Result<std::vector<Change>> next(Deadline deadline) override;
  int fd() const override;

 private:
  const std::shared_ptr<Memory> memory_;
  const std::string prefix_;
  uint64_t id_ = 0;
  mutable Waiter waiter_;  // guarded by the memory's mutex
};

// Wakes those who wait for what has changed; with the lock.
void settle(Memory& memory) {
  State::Woken woken = memory.state.takeWoken();
  for (const auto& [id, value] : woken.awaits) {
    const auto found = memory.waiters.find(id);
    if (found == memory.waiters.end()) continue;
    found->second->value = value;
    found->second->changed.notify_all();
  }
  for (uint64_t id : woken.watches) {
    const auto found = memory.waiters.find(id);
    if (found == memory.waiters.end()) continue;
    if (found->second->fd) found->second->fd->signal();
    found->second->changed.notify_all();
  }
}

class MemoryClient final : public Store, public std::enable_shared_from_this<MemoryClient> {
 public:
  explicit MemoryClient(std::shared_ptr<Memory> memory) : memory_(std::move(memory)) {}

  Result<std::string> get(std::string_view key, Deadline) override {
    HMC_TRY(checkKey(key));
    return request<std::string>([&](State& state) -> Result<std::string> {
      const Bytes value = state.get(key);
      if (!value) return error(Code::notFound, "the store has no key {}", key);
      return *value;
    });
  }
  Result<std::string> await(std::string_view key, Deadline deadline,
                            const std::stop_token& stop) override;
  Result<std::vector<Entry>> list(std::string_view prefix, Deadline) override {
    HMC_TRY(checkPrefix(prefix));
    return request<std::vector<Entry>>([&](State& state) {
      std::vector<Entry> entries;
      for (const Record& record : state.list(prefix))
        entries.push_back({record.key, *record.value});
      return entries;
    });
  }
  Status set(std::string_view key, std::string_view value, Deadline,
             const std::shared_ptr<KeyLease>& lease) override {
    HMC_ASSIGN(const uint64_t id, known(lease));
    return change([&](State& state) { return state.set(key, value, id); });
  }
  Result<Swap> compareAndSet(std::string_view key, std::optional<std::string_view> expected,
                             std::optional<std::string_view> desired, Deadline,
                             const std::shared_ptr<KeyLease>& lease) override {
    HMC_ASSIGN(const uint64_t id, known(lease));
    return request<Swap>(
        [&](State& state) { return state.compareAndSet(key, expected, desired, id); });
  }
  Result<int64_t> add(std::string_view key, int64_t amount, Deadline) override {
    return request<int64_t>([&](State& state) { return state.add(key, amount); });
  }
  Result<uint64_t> append(std::string_view key, std::string_view bytes, Deadline) override {
    return request<uint64_t>([&](State& state) { return state.append(key, bytes); });
  }
  Status remove(std::string_view key, Deadline) override {
    HMC_TRY(checkKey(key));
    return change([&](State& state) {
      state.remove(key);
      return Status();
    });
  }
  Status removeAll(std::string_view prefix, Deadline) override {
    HMC_TRY(checkPrefix(prefix));
    return change([&](State& state) {
      state.removeAll(prefix);
      return Status();
    });
  }
  Result<std::unique_ptr<Watch>> watch(std::string_view prefix) override {
    HMC_TRY(checkPrefix(prefix));
    return std::unique_ptr<Watch>(new MemoryWatch(memory_, prefix));
  }
  Result<std::shared_ptr<KeyLease>> lease(std::chrono::milliseconds ttl, Deadline) override;

  Status statusOf(const KeyLease* lease, uint64_t id) const;
  Status revoke(const KeyLease* lease, uint64_t id);
  void die();

 private:
  template <class T, class Function>
  Result<T> request(Function carryOut) {
    std::lock_guard lock(memory_->mutex);
    if (dead_) return died();
    ++memory_->requests;
    Result<T> result = carryOut(memory_->state);
    settle(*memory_);
    return result;
  }
  template <class Function>
  Status change(Function carryOut) {
    const auto done = request<bool>([&](State& state) -> Result<bool> {
      HMC_TRY(carryOut(state));
      return true;
    });
    return done.status();
  }
  Result<uint64_t> known(const std::shared_ptr<KeyLease>& lease) const;
  static Status died() {
    return error(Code::disconnected, "the store went before it answered: this client was killed");
  }

  const std::shared_ptr<Memory> memory_;
  // Both guarded by the memory's mutex.
  std::map<const KeyLease*, uint64_t> leases_;
  bool dead_ = false;
};

Result<std::string> MemoryClient::await(std::string_view key, Deadline deadline,
                                        const std::stop_token& stop) {
  HMC_TRY(checkKey(key));
  Waiter waiter;
  const std::stop_callback wake(stop, [&] {
    std::lock_guard lock(memory_->mutex);
    waiter.changed.notify_all();
  });
  std::unique_lock lock(memory_->mutex);
  if (dead_) return died();
  ++memory_->requests;
  const uint64_t id = ++memory_->lastId;
  waiter.value = memory_->state.await(key, id);
  memory_->waiters.emplace(id, &waiter);
  while (!waiter.value && !stop.stop_requested() && !deadline.passed())
    waiter.changed.wait_until(lock, deadline.at());
  memory_->waiters.erase(id);
  memory_->state.forget(id);
  if (waiter.value) return *waiter.value;
  if (stop.stop_requested()) return error(Code::cancelled, "waiting for {} was given up", key);
  return error(Code::deadlineExceeded, "nobody set the key {} before the deadline", key);
}

Result<std::shared_ptr<KeyLease>> MemoryClient::lease(std::chrono::milliseconds ttl, Deadline) {
  uint64_t id = 0;
  HMC_TRY(change([&](State& state) {
    id = ++memory_->lastId;
    return state.grant(id, ttl, State::Time());
  }));
  auto lease = std::make_shared<MemoryLease>(shared_from_this(), id);
  std::lock_guard lock(memory_->mutex);
  leases_.emplace(lease.get(), id);
  return std::shared_ptr<KeyLease>(std::move(lease));
}

Result<uint64_t> MemoryClient::known(const std::shared_ptr<KeyLease>& lease) const {
  if (!lease) return State::kNoLease;
  std::lock_guard lock(memory_->mutex);
  const auto found = leases_.find(lease.get());
  if (found != leases_.end()) return found->second;
  return error(Code::invalidArgument, "the lease is not one of this store, or was revoked");
}

Status MemoryClient::statusOf(const KeyLease* lease, uint64_t) const {
  std::lock_guard lock(memory_->mutex);
  if (dead_) return died();
  if (leases_.count(lease) == 0) return error(Code::cancelled, "the lease was revoked");
  return Status();
}

Status MemoryClient::revoke(const KeyLease* lease, uint64_t id) {
  std::lock_guard lock(memory_->mutex);
  if (leases_.erase(lease) == 0 || dead_) return Status();
  ++memory_->requests;
  memory_->state.revoke(id);
  settle(*memory_);
  return Status();
}

void MemoryClient::die() {
  std::lock_guard lock(memory_->mutex);
  dead_ = true;
  for (const auto& [lease, id] : leases_) memory_->state.revoke(id);
  settle(*memory_);
}

Status MemoryLease::status() const {
  return client_->statusOf(this, id_);
}

Status MemoryLease::revoke(Deadline) {
  return client_->revoke(this, id_);
}

MemoryWatch::MemoryWatch(std::shared_ptr<Memory> memory, std::string_view prefix)
    : memory_(std::move(memory)), prefix_(prefix) {
  std::lock_guard lock(memory_->mutex);
  ++memory_->requests;
  id_ = ++memory_->lastId;
  memory_->state.watch(id_, prefix);
  memory_->waiters.emplace(id_, &waiter_);
}

MemoryWatch::~MemoryWatch() {
  std::lock_guard lock(memory_->mutex);
  memory_->state.unwatch(id_);
  memory_->waiters.erase(id_);
}

Result<std::vector<Change>> MemoryWatch::next(Deadline deadline) {
  std::unique_lock lock(memory_->mutex);
  for (;;) {
    HMC_ASSIGN(auto events, memory_->state.take(id_, SIZE_MAX));
    if (waiter_.fd) waiter_.fd->clear();
    std::vector<Change> changes;
    changes.reserve(events.size());
    for (State::Event& event : events) {
      ++memory_->delivered.changes;
      memory_->delivered.bytes += event.key.size() + (event.value ? event.value->size() : 0);
      changes.push_back(
          {event.kind, {std::move(event.key), event.value ? *event.value : std::string()}});
    }
    if (!changes.empty()) return changes;
    if (deadline.passed()) {
      return error(Code::deadlineExceeded, "no key that begins with {} changed before the deadline",
                   prefix_);
    }
    waiter_.changed.wait_until(lock, deadline.at());
  }
}

int MemoryWatch::fd() const {
  std::lock_guard lock(memory_->mutex);
  if (!waiter_.fd) {
    auto made = EventFd::create("a watch of the store");
    if (!made.ok()) return -1;
    waiter_.fd.emplace(*std::move(made));
    if (memory_->state.hasEvents(id_)) waiter_.fd->signal();
  }
  return waiter_.fd->get();
}

class MemoryStoreImpl final : public MemoryStore {
 public:
  std::shared_ptr<Store> connect() override {
    auto client = std::make_shared<MemoryClient>(memory_);
    std::lock_guard lock(mutex_);
    clients_[client.get()] = client;
    return client;
  }
  void kill(const std::shared_ptr<Store>& client) override {
    std::shared_ptr<MemoryClient> killed;
    {
      std::lock_guard lock(mutex_);
      const auto found = clients_.find(client.get());
      if (found != clients_.end()) killed = found->second.lock();
    }
    if (killed) killed->die();
  }
  uint64_t requests() const override {
    std::lock_guard lock(memory_->mutex);
    return memory_->requests;
  }
  Delivered delivered() const override {
    std::lock_guard lock(memory_->mutex);
    return memory_->delivered;
  }

 private:
  const std::shared_ptr<Memory> memory_ = std::make_shared<Memory>();
  std::mutex mutex_;
  std::map<const Store*, std::weak_ptr<MemoryClient>> clients_;  // guarded by mutex_
};

}  // namespace

std::shared_ptr<MemoryStore> MemoryStore::create() {
  return std::make_shared<MemoryStoreImpl>();
}

}  // namespace hmc::store
