#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "store/client_watch.h"
#include "store/connection.h"
#include "store/leasing_store.h"

namespace hmc::store {

// The store of a Server. Its threads hold nothing.
class Client final : public LeasingStore, private ConnectionUpkeep {
 public:
  static Result<std::shared_ptr<Client>> open(const std::string& address,
                                              const StoreOptions& options, Deadline deadline);
  ~Client() override;

  Result<std::string> get(std::string_view key, Deadline deadline) override;
  Result<std::string> await(std::string_view key, Deadline deadline,
                            const std::stop_token& stop) override;
  Result<std::vector<Entry>> list(std::string_view prefix, Deadline deadline) override;
  Result<int64_t> add(std::string_view key, int64_t amount, Deadline deadline) override;
  Result<uint64_t> append(std::string_view key, std::string_view bytes, Deadline deadline) override;
  Result<std::unique_ptr<Watch>> watch(std::string_view prefix) override;

 private:
  class KeyWatch;
  using WatchPtr = std::shared_ptr<ClientWatch>;

  explicit Client(const StoreOptions& options) : grace_(options.grace) {}
  Result<std::vector<Entry>> listOnce(std::string_view prefix, Deadline deadline, bool& again);

  Status put(std::string_view key, std::string_view value, uint64_t lease,
             Deadline deadline) override;
  Result<Swap> swap(std::string_view key, std::optional<std::string_view> expected,
                    std::optional<std::string_view> desired, uint64_t lease,
                    Deadline deadline) override;
  Status erase(std::string_view key, Deadline deadline) override;
  Status eraseAll(std::string_view prefix, Deadline deadline) override;
  Result<std::string> make(const ClientLease& lease, Deadline deadline) override;
  Status end(const ClientLease& lease, Deadline deadline) override;
  void endLater(const ClientLease& lease) override;
  bool holds(const ClientLease& lease) const override;
  bool forked() const override { return connection_->fork().inChild(); }
  void wake() override { connection_->wake(); }

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

  std::mutex mutex_;  // guards the two below
  std::map<uint64_t, WatchPtr> watches_;
  std::vector<uint64_t> toRevoke_;  // leases that were dropped while the server was out of reach

  std::unique_ptr<Connection> connection_;
};

}  // namespace hmc::store
