#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <vector>

#include "hmc/device.h"
#include "hmc/pool.h"
#include "hmc/result.h"
#include "pool/control_page.h"
#include "pool/host_barrier.h"
#include "pool/key_watch.h"
#include "pool/pool_impl.h"
#include "pool/shared_numbers.h"
#include "pool/slices.h"
#include "pool/turn.h"
#include "pool/world.h"
#include "store/group.h"

namespace hmc::pool {

struct SymmetricOptions {
  uint32_t id = 0;
  uint32_t rank = 0;
  uint32_t ranks = 0;  // the same at all of them, and so is `size`
  uint64_t size = 0;   // of each rank's slot
  Device device;       // where it lies
};

// Memory of the same size at a fixed number of ranks, in the device slots of a pool whose host
// slots are the control pages. Barriers and allgathers go through those when all ranks are on one
// host, else through the store. Safe from any thread; barrier() and allgather() for one at a time.
class Symmetric {
 public:
  // All ranks call it; returns when all slots of this host are mapped everywhere.
  static Result<std::unique_ptr<Symmetric>> create(const World& world,
                                                   const SymmetricOptions& options,
                                                   Deadline deadline);
  // Waits for no other rank.
  ~Symmetric();
  Symmetric(const Symmetric&) = delete;
  Symmetric& operator=(const Symmetric&) = delete;

  const SymmetricOptions& options() const { return options_; }
  char* base() const { return pool_->addresses().at(PoolSpace::device, 0); }
  // Whether that rank's slot is mapped here.
  Result<bool> mapped(uint32_t rank) const;
  // Whether barriers go through shared memory.
  bool onOneHost() const { return barrier_.has_value(); }

  // Barriers and allgathers that other threads are in end, and so do all later ones.
  void interrupt();

  ControlPage& controlPage(uint32_t rank) const {
    return *reinterpret_cast<ControlPage*>(controlOf(rank));
  }
  // For the device side of this process.
  Status setContext(const void* data, size_t size);
  Status barrier(Deadline deadline);
  // Everyone's `size` bytes, by rank, to `all`.
  Status allgather(const void* mine, uint32_t size, void* all, Deadline deadline);

  // Some of the ranks, under a name that no other of them use at the time; they number themselves
  // from 0.
  struct SubGroup {
    std::string name;
    uint32_t rank;
    uint32_t ranks;
  };
  Status barrierOf(const SubGroup& group, Deadline deadline);
  Status allgatherOf(const SubGroup& group, const void* mine, uint32_t size, void* all,
                     Deadline deadline);

  // Numbers that belong to one rank at a time: the lowest below `limit` that is free.
  Result<uint32_t> takeNumber(uint32_t limit, Deadline deadline);
  Status giveNumberBack(uint32_t number, Deadline deadline);

  // `told` is called once, on a thread of ours, when any rank calls tellAll(); again replaces it.
  Status onTold(std::function<void(int)> told);
  Status tellAll(int status, Deadline deadline);

 private:
  // A sub-group as this rank has used it.
  struct Gathering {
    Gathering(std::shared_ptr<store::Store> store, const std::string& prefix, const SubGroup& who)
        : group(who), rendezvous(std::move(store), prefix, who.rank, who.ranks) {}
    const SubGroup group;
    store::Rendezvous rendezvous;
    Turns collective;
    // Which of all ranks each of its ranks is, as far as they have said so. Both belong to whoever
    // has the turn.
    std::map<uint32_t, uint32_t> ranks;
    bool introduced = false;  // we have said so
  };
  static Status checkShare(uint32_t size);
  static Status spread(const std::vector<std::string>& shares, uint32_t size, char* all);
  Result<std::shared_ptr<Gathering>> gatheringOf(const SubGroup& group);
  Symmetric(const World& world, const SymmetricOptions& options, std::shared_ptr<PoolImpl> pool);
  // All ranks must choose the same kind of barrier, so they tell each other what they could do.
  Status meet(Deadline deadline);
  void forget();
  // Ends a wait when a rank goes, or the object does.
  EitherStop wake() const;
  Status checkOthers(Deadline deadline) const;
  Status introduce(Gathering& gathering, Deadline deadline) const;
  // `told` are the deaths that the caller knew of when it called.
  Status checkGathering(Gathering& gathering, const std::set<uint32_t>& told, Deadline deadline);
  Status checkStrangers(const Gathering& gathering, const std::set<uint32_t>& told);
  // Deaths that this process was told of by a call that failed.
  std::set<uint32_t> toldDeaths();
  // For what a call of all ranks answers: whoever hears that a rank is gone knows of it.
  Status rememberDeaths(Status outcome);
  Status hearIntroductions(Gathering& gathering, Deadline deadline) const;
  static Status interruption();
  static Status oneAtATime();
  bool sharesMemoryWithAll() const;
  Status gatherHere(const void* mine, uint32_t size, char* all, Deadline deadline);
  Status fetchShare(uint32_t rank, uint32_t size, char* to, Deadline deadline);
  Status gatherThroughStore(const void* mine, uint32_t size, char* all, Deadline deadline);
  ControlPage& page() const { return controlPage(options_.rank); }
  char* controlOf(uint32_t rank) const { return pool_->addresses().at(PoolSpace::host, rank); }

  const SymmetricOptions options_;
  const std::shared_ptr<store::Store> store_;
  const std::shared_ptr<PoolImpl> pool_;
  std::string prefix_;                           // of our keys in the store; set by meet()
  std::optional<store::Rendezvous> rendezvous_;  // set by meet()
  std::unique_ptr<SharedNumbers> numbers_;       // set by meet()
  std::optional<HostBarrier> barrier_;           // set where all ranks are on this host
  bool met_ = false;                             // set by meet()
  std::stop_source interrupted_;
  Turns collective_;  // of threads in a barrier or an allgather
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<Gathering>> gatherings_;  // guarded by mutex_, by name
  std::unique_ptr<KeyWatch> told_;                                // guarded by mutex_
  std::set<uint32_t> toldDeaths_;                                 // guarded by mutex_
  Status broken_;  // why there can be no more of them; whoever has the turn writes it
};

}  // namespace hmc::pool
