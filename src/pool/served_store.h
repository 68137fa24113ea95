#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "hmc/deadline.h"
#include "hmc/pool.h"
#include "pool/launch.h"
#include "store/server.h"
#include "store/store.h"

namespace hmc::pool {

// How to join a pool.
struct Joining {
  std::string store;
  PoolOptions options;
  // Rank 0 of a launcher: it serves the store if its host has that address and nobody does yet.
  bool firstRank = false;
};

// What the launcher says, where the caller's options leave it open.
Result<Joining> joiningFrom(const Launch& launch, const PoolOptions& options);

// A store that this process serves. Its end waits for the processes that are connected: their last
// calls shall not find it gone.
class ServedStore {
 public:
  ServedStore(std::unique_ptr<store::Server> server, std::chrono::milliseconds patience)
      : server_(std::move(server)), patience_(patience) {}
  ~ServedStore() { (void)server_->awaitNoClients(patience_); }
  ServedStore(const ServedStore&) = delete;
  ServedStore& operator=(const ServedStore&) = delete;

  // Its end shall wait for nobody: what the others want of it has failed.
  void endAtOnce() { patience_ = std::chrono::milliseconds(0); }

 private:
  const std::unique_ptr<store::Server> server_;
  std::chrono::milliseconds patience_;
};

struct StoreOfPool {
  std::unique_ptr<ServedStore> served;  // null: somebody else's
  std::shared_ptr<store::Store> client;
};

// Serves the store if that is up to this process, and opens it. What rank 0 serves ends when the
// others have left, or the lease is over: they leave at about the same time, and each needs the
// store for that. `stop` ends the waiting for another process that serves it.
Result<StoreOfPool> openStoreOf(const Joining& joining, Deadline deadline,
                                const std::stop_token& stop = {});

}  // namespace hmc::pool
