#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "store/client_lease.h"
#include "store/client_watch.h"
#include "store/connection.h"
#include "store/store.h"

namespace hmc::store {

// The store of a Server. Its leases and watches hold it, and its threads hold nothing.
class Client final : public Store,
                     public std::enable_shared_from_this<Client>,
                     private ConnectionUpkeep {
 public:
  static Result<std::shared_ptr<Client>> open(const std::string& address,
                                              const StoreOptions& options, Deadline deadline);
  ~Client() override;

  Result<std::string> get(std::string_view key, Deadline deadline) override;
  Result<std::string> await(std::string_view key, Deadline deadline) override;
  Result<std::vector<Entry>> list(std::string_view prefix, Deadline deadline) override;
  Status set(std::string_view key, std::string_view value, Deadline deadline,
             const std::shared_ptr<KeyLease>& lease) override;
  Result<Swap> compareAndSet(std::string_view key, std::optional<std::string_view> expected,
                             std::optional<std::string_view> desired, Deadline deadline,
                             const std::shared_ptr<KeyLease>& lease) override;
  Result<int64_t> add(std::string_view key, int64_t amount, Deadline deadline) override;
  Result<uint64_t> append(std::string_view key, std::string_view bytes, Deadline deadline) override;
  Status remove(std::string_view key, Deadline deadline) override;
  Status removeAll(std::string_view prefix, Deadline deadline) override;
  Result<std::unique_ptr<Watch>> watch(std::string_view prefix) override;
  Result<std::shared_ptr<KeyLease>> lease(std::chrono::milliseconds ttl,
                                          Deadline deadline) override;

 private:
  class Lease;
  class KeyWatch;
  using LeasePtr = std::shared_ptr<ClientLease>;
  using WatchPtr = std::shared_ptr<ClientWatch>;

  explicit Client(const StoreOptions& options) : grace_(options.grace) {}
  Result<std::vector<Entry>> listOnce(std::string_view prefix, Deadline deadline, bool& again);
  // Null for null.
  Result<LeasePtr> known(const std::shared_ptr<KeyLease>& lease) const;
  // Carries the request out under the lease, which is restored first if the server has lost it.
  Result<std::string> callWith(const LeasePtr& lease, const Request& request,
                               Connection::Repeat repeat, Deadline deadline);
  // The user has set the key under that lease; it belongs to no other.
  void record(const LeasePtr& lease, std::string_view key, std::string_view value, uint64_t made);
  std::vector<LeasePtr> leases() const;
  Status statusOf(const ClientLease& lease) const;
  Status revoke(const Lease* handle, ClientLease& lease, Deadline deadline);
  void drop(const Lease* handle, ClientLease& lease);

  Deadline maintain(const ChannelPtr& channel) override;
  Deadline maintainLeases(const ChannelPtr& channel);
  Status keepAlive(const ChannelPtr& channel, const std::vector<LeasePtr>& leases);
  void openWatch(const ChannelPtr& channel, const WatchPtr& watch);
  void askNext(const ChannelPtr& channel, const WatchPtr& watch);
  void watchAnswered(const ChannelPtr& channel, const WatchPtr& watch,
                     const Result<std::string>& answer);
  void drop(uint64_t watchId, const ClientWatch& watch);

  const std::chrono::milliseconds grace_;
  std::atomic<uint64_t> lastId_{0};
  std::weak_ptr<Channel> maintained_;  // the connection's thread's: the channel of its last look

  mutable std::mutex mutex_;  // guards the three below
  std::map<const KeyLease*, LeasePtr> leases_;
  std::map<uint64_t, WatchPtr> watches_;
  std::vector<uint64_t> toRevoke_;  // leases that were dropped while the server was out of reach

  std::unique_ptr<Connection> connection_;
};

}  // namespace hmc::store
