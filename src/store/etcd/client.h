#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "store/etcd/gateway.h"
#include "store/etcd/key_watch.h"
#include "store/leasing_store.h"

namespace hmc::store::etcd {

// The store in an etcd. Its threads hold nothing.
class EtcdClient final : public LeasingStore, private LeaseServer {
 public:
  static Result<std::shared_ptr<EtcdClient>> open(const std::string& url,
                                                  const StoreOptions& options, Deadline deadline);
  ~EtcdClient() override;

  Result<std::string> get(std::string_view key, Deadline deadline) override;
  Result<std::vector<Entry>> list(std::string_view prefix, Deadline deadline) override;
  Result<std::string> await(std::string_view key, Deadline deadline,
                            const std::stop_token& stop) override;
  Result<std::unique_ptr<Watch>> watch(std::string_view prefix) override;
  Result<int64_t> add(std::string_view key, int64_t amount, Deadline deadline) override;
  Result<uint64_t> append(std::string_view key, std::string_view bytes, Deadline deadline) override;

 private:
  class Watching;
  using WatchPtr = std::shared_ptr<KeyWatch>;
  using Repeat = Gateway::Repeat;

  explicit EtcdClient(const StoreOptions& options) : grace_(options.grace) {}
  std::string full(std::string_view key) const { return gateway_->prefix() + std::string(key); }
  Result<RangeAnswer> range(const Range& range, Deadline deadline);
  Result<TxnAnswer> transact(const Condition& condition, const std::string& key,
                             std::optional<std::string_view> value, uint64_t lease,
                             Deadline deadline);
  // Replaces the value of a key by what `change` makes of it, and of nothing when it is not there.
  template <class Function>
  Status modify(std::string_view key, Deadline deadline, Function change);
  // Waits for the key to be set after the revision. None: ask again whether it is there.
  Result<std::optional<std::string>> awaitChange(const std::string& key, int64_t revision,
                                                 Deadline deadline, const std::stop_token& stop);

  Status erase(std::string_view key, Deadline deadline) override;
  Status eraseAll(std::string_view prefix, Deadline deadline) override;
  Status put(std::string_view key, std::string_view value, uint64_t lease,
             Deadline deadline) override;
  Result<Swap> swap(std::string_view key, std::optional<std::string_view> expected,
                    std::optional<std::string_view> desired, uint64_t lease,
                    Deadline deadline) override;

  bool forked() const override { return gateway_->fork().inChild(); }
  void wake() override;
  bool holds(const ClientLease& lease) const override;
  Result<std::string> make(const ClientLease& lease, Deadline deadline) override;
  Status end(const ClientLease& lease, Deadline deadline) override;
  void endLater(const ClientLease& lease) override { revoke(lease); }
  const std::string& incarnation() const override;
  Status grant(const ClientLease& lease, Deadline deadline) override;
  Result<bool> claim(const ClientLease& lease, const std::string& key, const std::string& value,
                     Deadline deadline) override;
  void revoke(const ClientLease& lease) override;

  void drop(const WatchPtr& watch);

  // The thread hmc-etcd-keep, and what it waits on.
  struct Keeper {
    std::mutex mutex;  // guards the three below
    std::condition_variable changed;
    size_t revoking = 0;  // requests under way that nobody waits for
    bool woken = false;
    bool ending = false;
    std::jthread thread;
  };
  void serve();
  Deadline maintain();
  Deadline maintainLeases();
  Status keepAlive(ClientLease& lease);

  const std::chrono::milliseconds grace_;
  uint64_t maintained_ = 0;  // the thread's: the gateway's breaks at its last look

  std::mutex mutex_;
  std::vector<WatchPtr> watches_;  // guarded by mutex_

  std::unique_ptr<Gateway> gateway_;
  std::unique_ptr<Keeper> keeper_;
};

}  // namespace hmc::store::etcd
