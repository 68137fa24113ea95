#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "agent/range_map.h"
#include "agent/record.h"
#include "hmc/deadline.h"
#include "hmc/node.h"
#include "store/store.h"

namespace hmc::agent {

// Another agent and the memory that it registered, as far as we have asked. Safe from any thread.
class RemoteAgent {
 public:
  // The Node outlives it.
  RemoteAgent(Node& node, std::shared_ptr<store::Store> store, std::string id)
      : node_(node), store_(std::move(store)), id_(std::move(id)) {}

  struct Place {
    std::shared_ptr<const RemoteRegion> region;
    uint64_t offset;
    uint64_t size;  // that many bytes of those asked for lie there
  };
  // Where bytes of that agent lie, the first of them at `address`. Asks the store about what is
  // not known here, connects and opens. notFound when the agent has registered nothing there.
  Result<Place> find(uint64_t address, uint64_t size, Deadline deadline);
  // The agent took it back, or the connection ended: it is not used again.
  void forget(const RemoteRegion& region);

 private:
  struct Memory {
    uint64_t number;
    std::shared_ptr<const RemoteRegion> opened;  // null: not yet
  };
  using Lock = std::unique_lock<std::mutex>;

  void dropIfGoneLocked();
  // One thread at a time asks, and the others wait for what it learns. Both unlock meanwhile.
  Status awaitTurn(Lock& lock, Deadline deadline);
  Status refresh(Lock& lock, Deadline deadline);
  Status open(Lock& lock, uint64_t begin, uint64_t number, Deadline deadline);
  Status learnLocked(const std::vector<store::Entry>& entries);
  Result<std::shared_ptr<const RemoteRegion>> openUnlocked(std::optional<Peer>& peer,
                                                           const Record& record, uint64_t number,
                                                           Deadline deadline);

  Node& node_;
  const std::shared_ptr<store::Store> store_;
  const std::string id_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool asking_ = false;       // guarded by mutex_, and so are the rest
  Record record_;             // as the store had it last
  std::optional<Peer> peer_;  // none: not connected
  RangeMap<Memory> memory_;
};

}  // namespace hmc::agent
