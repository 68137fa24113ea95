#include "store/etcd/client.h"

#include <utility>

#include "base/environment.h"
#include "base/error.h"
#include "base/thread.h"
#include "store/etcd/etcd.h"
#include "store/state.h"

// The calls of a client; client_upkeep.cc has its leases and watches.

namespace hmc::store::etcd {

namespace {

constexpr const char* kRange = "/v3/kv/range";
constexpr const char* kPut = "/v3/kv/put";
constexpr const char* kTxn = "/v3/kv/txn";
constexpr const char* kDelete = "/v3/kv/deleterange";
// An await looks again after so long: a member that has stopped does not end its stream.
constexpr std::chrono::seconds kAwaitRenewal{15};
constexpr std::chrono::milliseconds kPause{20};

// One await's stream.
struct Awaited {
  std::mutex mutex;
  std::condition_variable changed;
  std::optional<std::string> value;
  std::optional<Status> ended;
};

}  // namespace

Result<std::shared_ptr<Store>> open(const std::string& url, const StoreOptions& options,
                                    Deadline deadline) {
  HMC_ASSIGN(auto client, EtcdClient::open(url, options, deadline));
  return std::shared_ptr<Store>(std::move(client));
}

Result<std::shared_ptr<EtcdClient>> EtcdClient::open(const std::string& url,
                                                     const StoreOptions& options,
                                                     Deadline deadline) {
  std::shared_ptr<EtcdClient> client(new EtcdClient(options));
  const std::string password = valueOf(variable::kEtcdPassword).value_or(options.secret);
  HMC_ASSIGN(client->gateway_, Gateway::open(url, password, deadline));
  client->keeper_ = std::make_unique<Keeper>();
  HMC_ASSIGN(client->keeper_->thread,
             startThread("hmc-etcd-keep", [at = client.get()](std::stop_token) { at->serve(); }));
  return client;
}

Result<RangeAnswer> EtcdClient::range(const Range& range, Deadline deadline) {
  HMC_ASSIGN(const std::string answer,
             gateway_->call(kRange, rangeRequest(range), Repeat::yes, deadline));
  return readRange(answer);
}

Result<std::string> EtcdClient::get(std::string_view key, Deadline deadline) {
  HMC_TRY(checkKey(key));
  HMC_ASSIGN(RangeAnswer found, range(Range::of(full(key)), deadline));
  if (found.kvs.empty()) return error(Code::notFound, "the store has no key {}", key);
  return std::move(found.kvs.front().value);
}

Result<std::string> EtcdClient::await(std::string_view key, Deadline deadline,
                                      const std::stop_token& stop) {
  HMC_TRY(checkKey(key));
  for (;;) {
    if (stop.stop_requested()) return error(Code::cancelled, "waiting for {} was given up", key);
    auto there = range(Range::of(full(key)), deadline);
    if (there.ok() && !there->kvs.empty()) return std::move(there->kvs.front().value);
    if (there.ok()) {
      HMC_ASSIGN(auto value, awaitChange(full(key), there->at.revision, deadline, stop));
      if (value) return *std::move(value);
    } else if (there.status().code() != Code::deadlineExceeded) {
      return there.status();
    }
    if (!deadline.passed()) continue;
    return error(Code::deadlineExceeded, "nobody set the key {} before the deadline{}{}", key,
                 there.ok() ? "" : ": ", there.ok() ? "" : there.status().message());
  }
}

Result<std::optional<std::string>> EtcdClient::awaitChange(const std::string& key, int64_t revision,
                                                           Deadline deadline,
                                                           const std::stop_token& stop) {
  auto awaited = std::make_shared<Awaited>();
  const Gateway::Member member = gateway_->member();
  const Deadline end = earlier(deadline, kAwaitRenewal);
  const uint64_t exchange = gateway_->watch(
      member, Range::of(key), revision + 1, end,
      [awaited](const WatchAnswer& answer) {
        if (answer.compacted) return false;
        std::lock_guard lock(awaited->mutex);
        for (const auto& event : answer.events) {
          if (event.removed) continue;
          awaited->value = event.kv.value;
          awaited->changed.notify_all();
          return false;
        }
        return true;
      },
      [awaited](const Status& why) {
        std::lock_guard lock(awaited->mutex);
        awaited->ended = why;
        awaited->changed.notify_all();
      });
  const std::stop_callback wake(stop, [awaited] {
    std::lock_guard lock(awaited->mutex);
    awaited->changed.notify_all();
  });
  std::unique_lock lock(awaited->mutex);
  awaited->changed.wait_until(
      lock, end.at(), [&] { return awaited->value || awaited->ended || stop.stop_requested(); });
  if (!awaited->ended) gateway_->cancel(exchange);
  if (awaited->value || !awaited->ended || end.passed()) return std::move(awaited->value);
  Status why = *awaited->ended;
  if (why.code() == Code::cancelled) return std::optional<std::string>();  // by us, to ask again
  if (why.code() != Code::disconnected) return why;
  lock.unlock();
  gateway_->leave(member);
  gateway_->pause(earlier(deadline, kPause));
  return std::optional<std::string>();
}

Result<std::vector<Entry>> EtcdClient::list(std::string_view prefix, Deadline deadline) {
  HMC_TRY(checkPrefix(prefix));
  HMC_ASSIGN(RangeAnswer found, range(Range::beginningWith(full(prefix)), deadline));
  std::vector<Entry> entries;
  entries.reserve(found.kvs.size());
  for (KeyValue& kv : found.kvs) {
    if (!kv.key.starts_with(gateway_->prefix())) {
      return error(Code::failed, "what answers as etcd is none: it lists a key that is not ours");
    }
    entries.push_back({kv.key.substr(gateway_->prefix().size()), std::move(kv.value)});
  }
  return entries;
}

Status EtcdClient::put(std::string_view key, std::string_view value, uint64_t lease,
                       Deadline deadline) {
  return gateway_->call(kPut, putRequest(full(key), value, lease), Repeat::yes, deadline).status();
}

Result<Swap> EtcdClient::swap(std::string_view key, std::optional<std::string_view> expected,
                              std::optional<std::string_view> desired, uint64_t lease,
                              Deadline deadline) {
  const std::string name = full(key);
  const Condition condition =
      expected ? Condition::hasValue(name, *expected) : Condition::absent(name);
  HMC_ASSIGN(TxnAnswer txn, transact(condition, name, desired, lease, deadline));
  Swap swap{.done = txn.succeeded};
  if (swap.done && expected) swap.found = *expected;
  if (!swap.done && txn.found) swap.found = std::move(txn.found->value);
  return swap;
}

Result<TxnAnswer> EtcdClient::transact(const Condition& condition, const std::string& key,
                                       std::optional<std::string_view> value, uint64_t lease,
                                       Deadline deadline) {
  HMC_ASSIGN(const std::string answer,
             gateway_->call(kTxn, txnRequest(condition, key, value, lease), Repeat::no, deadline));
  return readTxn(answer);
}

// Each attempt that fails says what is there instead. An attempt whose answer is lost is the last.
template <class Function>
Status EtcdClient::modify(std::string_view key, Deadline deadline, Function change) {
  HMC_TRY(checkKey(key));
  const std::string name = full(key);
  std::optional<KeyValue> found;
  for (;;) {
    HMC_ASSIGN(const std::string value, change(found ? &found->value : nullptr));
    HMC_TRY(checkValue(value));
    const Condition same =
        found ? Condition::hasRevision(name, found->modRevision) : Condition::absent(name);
    auto txn = transact(same, name, value, found ? found->lease : 0, deadline);
    // The key's lease has just ended, and the key with it.
    const bool ended = found && txn.status().code() == Code::notFound;
    if (!txn.ok() && !ended) return txn.status();
    if (txn.ok() && txn->succeeded) return Status();
    if (deadline.passed()) {
      return error(Code::deadlineExceeded, "others changed the key {} until the deadline", key);
    }
    found = ended ? std::nullopt : std::move(txn->found);
  }
}

Result<int64_t> EtcdClient::add(std::string_view key, int64_t amount, Deadline deadline) {
  int64_t sum = 0;
  HMC_TRY(modify(key, deadline, [&](const std::string* found) -> Result<std::string> {
    HMC_ASSIGN(sum, sumOf(key, found ? std::string_view(*found) : "0", amount));
    return std::to_string(sum);
  }));
  return sum;
}

Result<uint64_t> EtcdClient::append(std::string_view key, std::string_view bytes,
                                    Deadline deadline) {
  HMC_TRY(checkValue(bytes));
  uint64_t size = 0;
  HMC_TRY(modify(key, deadline, [&](const std::string* found) -> Result<std::string> {
    std::string value = found ? *found : std::string();
    value.append(bytes);
    size = value.size();
    return value;
  }));
  return size;
}

Status EtcdClient::erase(std::string_view key, Deadline deadline) {
  return gateway_->call(kDelete, deleteRequest(Range::of(full(key))), Repeat::yes, deadline)
      .status();
}

Status EtcdClient::eraseAll(std::string_view prefix, Deadline deadline) {
  return gateway_
      ->call(kDelete, deleteRequest(Range::beginningWith(full(prefix))), Repeat::yes, deadline)
      .status();
}

}  // namespace hmc::store::etcd
