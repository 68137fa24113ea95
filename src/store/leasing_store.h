#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "store/client_lease.h"
#include "store/store.h"

namespace hmc::store {

// What the clients of a server and of an etcd share. It checks keys and values, remembers which
// keys were set under which lease, and carries a request out again when its lease had to be
// restored. Leases and watches hold it. Safe from any thread.
class LeasingStore : public Store, public std::enable_shared_from_this<LeasingStore> {
 public:
  Status set(std::string_view key, std::string_view value, Deadline deadline,
             const std::shared_ptr<KeyLease>& lease) final;
  Result<Swap> compareAndSet(std::string_view key, std::optional<std::string_view> expected,
                             std::optional<std::string_view> desired, Deadline deadline,
                             const std::shared_ptr<KeyLease>& lease) final;
  Status remove(std::string_view key, Deadline deadline) final;
  Status removeAll(std::string_view prefix, Deadline deadline) final;
  Result<std::shared_ptr<KeyLease>> lease(std::chrono::milliseconds ttl, Deadline deadline) final;

 protected:
  using LeasePtr = std::shared_ptr<ClientLease>;

  // Requests. `lease` is an id or State::kNoLease; notFound means that the store has lost it.
  virtual Status put(std::string_view key, std::string_view value, uint64_t lease,
                     Deadline deadline) = 0;
  virtual Result<Swap> swap(std::string_view key, std::optional<std::string_view> expected,
                            std::optional<std::string_view> desired, uint64_t lease,
                            Deadline deadline) = 0;
  virtual Status erase(std::string_view key, Deadline deadline) = 0;
  virtual Status eraseAll(std::string_view prefix, Deadline deadline) = 0;
  // Answers the incarnation that has made it.
  virtual Result<std::string> make(const ClientLease& lease, Deadline deadline) = 0;
  virtual Status end(const ClientLease& lease, Deadline deadline) = 0;
  // The same, without waiting for the answer.
  virtual void endLater(const ClientLease& lease) = 0;

  // Whether the store is in reach and knows the lease, as far as we know.
  virtual bool holds(const ClientLease& lease) const = 0;
  // Whether this is a child that was forked: then there are no threads to answer.
  virtual bool forked() const = 0;
  // Has the thread that keeps leases look at them.
  virtual void wake() = 0;

  std::vector<LeasePtr> leases() const;

 private:
  class Handle;

  // Null for null.
  Result<LeasePtr> known(const std::shared_ptr<KeyLease>& lease) const;
  // Carries `request(id of the lease)` out, again after the lease was restored.
  template <class Request>
  auto under(const LeasePtr& lease, Deadline deadline, Request request)
      -> decltype(request(uint64_t{}));
  // The user has set the key under that lease; it belongs to no other.
  void record(const LeasePtr& lease, std::string_view key, std::string_view value, uint64_t made);
  Status revoke(const KeyLease* handle, ClientLease& lease, Deadline deadline);
  void drop(const KeyLease* handle, ClientLease& lease);
  // False when it was revoked before.
  bool forget(const KeyLease* handle);

  mutable std::mutex mutex_;
  std::map<const KeyLease*, LeasePtr> leases_;  // guarded by mutex_
};

}  // namespace hmc::store
