#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/fork_guard.h"
#include "hmc/pool.h"
#include "node/node_impl.h"
#include "pool/agreement.h"
#include "pool/copier.h"
#include "pool/members.h"
#include "pool/preparation.h"
#include "pool/served_store.h"

namespace hmc {

// One process's part of a pool: its addresses and memory from the beginning, membership between
// join() and leave(). Safe from any thread.
class PoolImpl {
 public:
  static Result<std::shared_ptr<PoolImpl>> create(std::shared_ptr<store::Store> store,
                                                  const PoolOptions& options, Deadline deadline,
                                                  const std::string& listen);
  // With what was prepared for these options.
  static Result<std::shared_ptr<PoolImpl>> create(pool::StoreOfPool store,
                                                  const PoolOptions& options, Deadline deadline,
                                                  const std::string& listen,
                                                  pool::Preparation& prepared);
  ~PoolImpl();

  // May be repeated after leave(), and when others have taken us for dead: the memory is the same.
  // One thread at a time joins or leaves.
  Status join(Deadline deadline);
  Status leave(Deadline deadline);

  const pool::Layout& layout() const { return agreement_.addresses.layout(); }
  const pool::AddressSpace& addresses() const { return agreement_.addresses; }
  pool::Members& members() { return *members_; }
  pool::Copier& copier() { return *copier_; }
  Status checkUsable() const;

 private:
  PoolImpl(pool::StoreOfPool store, const PoolOptions& options, pool::Agreement agreement,
           std::shared_ptr<NodeImpl> node, std::string address,
           std::shared_ptr<const Region> hostMemory);
  Status allocateOnDevice();
  Result<pool::Members::Own> exportOwn() const;

  const ForkGuard fork_;
  const PoolOptions options_;
  const std::unique_ptr<pool::ServedStore> served_;  // ends with the pool
  const std::shared_ptr<store::Store> store_;
  pool::Agreement agreement_;
  const std::shared_ptr<NodeImpl> node_;
  const std::string address_;
  // What this process brings, by PoolSpace.
  std::array<std::shared_ptr<const Region>, 2> memory_;
  std::unique_ptr<pool::Members> members_;
  std::unique_ptr<pool::Copier> copier_;
};

// Pool::join(): opens the store, serves it first if the options say so. An empty store is the
// launcher's.
Result<std::shared_ptr<PoolImpl>> joinPool(const std::string& store, const PoolOptions& options,
                                           Deadline deadline);

}  // namespace hmc
