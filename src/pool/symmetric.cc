#include "pool/symmetric.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "base/random.h"

namespace hmc::pool {

namespace {

// For a store that may be gone.
constexpr std::chrono::milliseconds kForgetTimeout{1000};

Status differs(uint32_t rank, size_t theirs, size_t ours) {
  return error(Code::invalidArgument, "rank {} gives {} bytes, this one {}: all need the same",
               rank, theirs, ours);
}

}  // namespace

Result<std::unique_ptr<Symmetric>> Symmetric::create(const World& world,
                                                     const SymmetricOptions& options,
                                                     Deadline deadline) {
  PoolOptions pool;
  pool.name = "shm." + std::to_string(options.id);
  pool.rank = options.rank;
  pool.capacity = options.ranks;
  pool.hostSize = ControlPage::bytes(options.ranks);
  pool.deviceSize = options.size;
  pool.deviceStride = options.size;
  pool.device = options.device;
  pool.node.insecure = true;  // MemFabric's manuals know no secret
  pool.node.tls = world.tls();
  HMC_ASSIGN(auto made, PoolImpl::create(world.store(), pool, deadline, world.listen()));
  HMC_TRY(made->join(deadline));
  std::unique_ptr<Symmetric> object(new Symmetric(world, options, std::move(made)));
  HMC_TRY(object->meet(deadline));
  return object;
}

Symmetric::Symmetric(const World& world, const SymmetricOptions& options,
                     std::shared_ptr<PoolImpl> pool)
    : options_(options), store_(world.store()), pool_(std::move(pool)) {
  ControlPage& own = page();
  own.id = options.id;
  own.rank = options.rank;
  own.ranks = options.ranks;
  own.symmetricSize = options.size;
  own.base = reinterpret_cast<uintptr_t>(base());
}

Symmetric::~Symmetric() {
  if (!pool_->checkUsable().ok()) return;
  if (barrier_) barrier_->depart();
  if (met_) forget();
}

// The last of the ranks removes what they have left in the store. Others may still read it.
void Symmetric::forget() {
  if (!numbers_->inReach()) return;
  const auto gone = store_->add(prefix_ + "gone", 1, kForgetTimeout);
  if (gone.ok() && *gone == options_.ranks) (void)store_->removeAll(prefix_, kForgetTimeout);
}

void Symmetric::interrupt() {
  interrupted_.request_stop();
  if (barrier_) barrier_->interrupt();
}

// A rank that ended and comes again, or has not yet destroyed the object that had our id before, is
// a member as well: then others are the members in the end, and the first rendezvous in vain.
Status Symmetric::meet(Deadline deadline) {
  while (true) {
    HMC_TRY(pool_->members().awaitRanks(options_.ranks, deadline));
    const std::string signature = pool_->members().signature();
    prefix_ = "shm/" + std::to_string(options_.id) + "/" + hex(signature) + "/";
    rendezvous_.emplace(store_, prefix_ + "all/", options_.rank, options_.ranks);
    auto replaced = [&] {
      return pool_->members().signature() == signature
                 ? Status()
                 : error(Code::disconnected, "the ranks are not the same any more");
    };
    const std::string mine = sharesMemoryWithAll() ? "1" : "0";
    const auto all = inSlices(
        deadline, [this] { return wake(); },
        [&](Deadline slice, const std::stop_token& stop) {
          return rendezvous_->allgather(mine, slice, stop);
        },
        replaced);
    if (!all.ok() && !replaced().ok() && !deadline.passed()) {
      HMC_TRY(store_->removeAll(prefix_, deadline));
      continue;
    }
    if (!all.ok()) return all.status();
    HMC_ASSIGN(numbers_, SharedNumbers::open(store_, prefix_ + "numbers/", deadline));
    met_ = true;
    if (std::all_of(all->begin(), all->end(), [](const std::string& one) { return one == "1"; })) {
      barrier_.emplace(pool_->members(), page(), options_.rank, options_.ranks);
    }
    return Status();
  }
}

EitherStop Symmetric::wake() const {
  return {pool_->members().nextDeparture(), interrupted_.get_token()};
}

// For calls through the store. A rank that is gone may have come before.
Status Symmetric::checkOthers(Deadline deadline) const {
  if (interrupted_.stop_requested()) return interruption();
  const auto here = pool_->members().ranks();
  if (here.size() == options_.ranks) return Status();
  HMC_ASSIGN(const auto come, rendezvous_->arrived(deadline));
  for (uint32_t rank = 0; rank < options_.ranks; ++rank) {
    if (!std::binary_search(here.begin(), here.end(), rank) &&
        std::find(come.begin(), come.end(), rank) == come.end()) {
      return error(Code::disconnected, "rank {} is gone and did not come", rank);
    }
  }
  return Status();
}

Status Symmetric::interruption() {
  return error(Code::cancelled, "another thread destroys this object");
}

bool Symmetric::sharesMemoryWithAll() const {
  for (uint32_t rank = 0; rank < options_.ranks; ++rank) {
    const auto slot = pool_->members().describe(PoolSpace::host, rank);
    if (!slot.ok() || !slot->mapped) return false;
  }
  return true;
}

Result<bool> Symmetric::mapped(uint32_t rank) const {
  HMC_ASSIGN(const auto slot, pool_->members().describe(PoolSpace::device, rank));
  return slot.mapped;
}

Status Symmetric::setContext(const void* data, size_t size) {
  HMC_TRY(pool_->checkUsable());
  if (size == 0 || size > kLargestContext) {
    return error(Code::invalidArgument, "a context of {} bytes cannot be: it has 1 to {}", size,
                 kLargestContext);
  }
  std::lock_guard lock(mutex_);
  ControlPage& own = page();
  own.contextSize.store(0);
  std::memcpy(own.context, data, size);
  own.contextSize.store(static_cast<uint32_t>(size), std::memory_order_release);
  return Status();
}

Status Symmetric::oneAtATime() {
  return error(Code::invalidArgument,
               "another thread is in a barrier or an allgather of this object: one at a time");
}

Status Symmetric::barrier(Deadline deadline) {
  HMC_TRY(pool_->checkUsable());
  const Turn turn(collective_, Deadline::now());
  if (!turn.mine()) return oneAtATime();
  HMC_TRY(broken_);
  if (barrier_) return rememberDeaths(barrier_->wait(deadline));
  return rememberDeaths(inSlices(
      deadline, [this] { return wake(); },
      [&](Deadline slice, const std::stop_token& stop) {
        return rendezvous_->barrier(slice, stop);
      },
      [&] { return checkOthers(deadline); }));
}

Status Symmetric::allgather(const void* mine, uint32_t size, void* all, Deadline deadline) {
  HMC_TRY(pool_->checkUsable());
  HMC_TRY(checkShare(size));
  const Turn turn(collective_, Deadline::now());
  if (!turn.mine()) return oneAtATime();
  HMC_TRY(broken_);
  auto* const to = static_cast<char*>(all);
  return rememberDeaths(barrier_ ? gatherHere(mine, size, to, deadline)
                                 : gatherThroughStore(mine, size, to, deadline));
}

// The second barrier: nobody overwrites its share, or takes it away, while others read it.
Status Symmetric::gatherHere(const void* mine, uint32_t size, char* all, Deadline deadline) {
  page().shareSize = size;
  std::memcpy(page().share, mine, size);
  HMC_TRY(barrier_->wait(deadline));
  Status outcome;
  for (uint32_t rank = 0; rank < options_.ranks && outcome.ok(); ++rank)
    outcome = fetchShare(rank, size, all + size_t{rank} * size, deadline);
  if (outcome.ok()) outcome = barrier_->wait(deadline);
  if (!outcome.ok()) broken_ = outcome.within("an allgather ended half way");
  return outcome;
}

Status Symmetric::fetchShare(uint32_t rank, uint32_t size, char* to, Deadline deadline) {
  const char* const theirs = controlOf(rank);
  uint32_t given = 0;
  HMC_TRY(pool_->copier().copy(&given, theirs + offsetof(ControlPage, shareSize), sizeof(given),
                               deadline.left()));
  if (given != size) return differs(rank, given, size);
  return pool_->copier().copy(to, theirs + offsetof(ControlPage, share), size, deadline.left());
}

Status Symmetric::gatherThroughStore(const void* mine, uint32_t size, char* all,
                                     Deadline deadline) {
  const std::string_view share(static_cast<const char*>(mine), size);
  HMC_ASSIGN(const auto shares, inSlices(
                                    deadline, [this] { return wake(); },
                                    [&](Deadline slice, const std::stop_token& stop) {
                                      return rendezvous_->allgather(share, slice, stop);
                                    },
                                    [&] { return checkOthers(deadline); }));
  return spread(shares, size, all);
}

Status Symmetric::checkShare(uint32_t size) {
  if (size > 0 && size <= kLargestShare) return Status();
  return error(Code::invalidArgument, "an allgather of {} bytes cannot be: each rank has 1 to {}",
               size, kLargestShare);
}

Status Symmetric::spread(const std::vector<std::string>& shares, uint32_t size, char* all) {
  for (uint32_t rank = 0; rank < shares.size(); ++rank) {
    if (shares[rank].size() != size) return differs(rank, shares[rank].size(), size);
    std::memcpy(all + size_t{rank} * size, shares[rank].data(), size);
  }
  return Status();
}

}  // namespace hmc::pool
