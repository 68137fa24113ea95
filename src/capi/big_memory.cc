#include "capi/big_memory.h"

#include "base/error.h"
#include "capi/copy_type.h"
#include "pool/endpoint.h"

namespace hmc::capi {

uint64_t roundUp(uint64_t size) {
  return (size + pool::kSlotUnit - 1) / pool::kSlotUnit * pool::kSlotUnit;
}

Result<std::unique_ptr<BigMemory>> BigMemory::create(uint32_t id,
                                                     std::shared_ptr<const Session> session,
                                                     const PoolSizes& sizes) {
  const pool::World& world = *session->world;
  PoolOptions options;
  options.name = "bm." + std::to_string(id);
  options.rank = world.rank();
  options.capacity = world.size();
  options.node.insecure = true;  // MemFabric's manuals know no secret
  options.node.tls = world.tls();
  options.hostSize = sizes.local[0];
  options.deviceSize = sizes.local[1];
  options.hostStride = sizes.most[0];
  options.deviceStride = sizes.most[1];
  options.device = session->device;
  options.numaNode = sizes.numaNode;
  options.hostFile = sizes.hostFile;
  HMC_ASSIGN(auto made,
             PoolImpl::create(world.store(), options, session->createTimeout, session->listen));
  return std::unique_ptr<BigMemory>(new BigMemory(id, std::move(session), std::move(made), sizes));
}

BigMemory::BigMemory(uint32_t id, std::shared_ptr<const Session> session,
                     std::shared_ptr<PoolImpl> pool, const PoolSizes& sizes)
    : id_(id), session_(std::move(session)), pool_(std::move(pool)), local_(sizes.local) {}

BigMemory::~BigMemory() {
  for (const auto& [thread, copies] : started_) {
    for (const auto& state : copies) (void)state->cancel();
  }
}

Status BigMemory::otherThread() {
  return error(Code::deadlineExceeded, "another thread joins or leaves this pool all the while");
}

Status BigMemory::join() {
  const Deadline deadline(session_->operationTimeout);
  const pool::Turn turn(membership_, deadline);
  if (!turn.mine()) return otherThread();
  HMC_TRY(pool_->join(deadline));
  joined_.store(true, std::memory_order_release);
  return Status();
}

Status BigMemory::leave() {
  const Deadline deadline(session_->operationTimeout);
  const pool::Turn turn(membership_, deadline);
  if (!turn.mine()) return otherThread();
  joined_.store(false);
  return pool_->leave(deadline);
}

PoolSpace BigMemory::mainSpace() const {
  return has(PoolSpace::device) ? PoolSpace::device : PoolSpace::host;
}

uint64_t BigMemory::stride(PoolSpace space) const {
  return pool_->layout().ranges[pool::indexOf(space)].stride;
}

Result<uint32_t> BigMemory::rankOf(const void* address) const {
  const auto place = pool_->addresses().find(address);
  if (!place) return error(Code::notFound, "{} is in no slot of this pool", address);
  return place->rank;
}

Status BigMemory::checkType(const void* from, const void* to, CopyType type) const {
  HMC_ASSIGN(const auto source, pool::endpointOf(pool_->addresses(), from));
  HMC_ASSIGN(const auto target, pool::endpointOf(pool_->addresses(), to));
  return checkCopyType(source, target, type, {ownRank(), session_->device});
}

Status BigMemory::copy(const PoolCopy& copy) const {
  return pool_->copier().copy(copy.to, copy.from, copy.size, session_->operationTimeout);
}

Status BigMemory::copyRows(const Rows& rows) const {
  return pool_->copier().copy2d(
      {rows.to, rows.toPitch, rows.from, rows.fromPitch, rows.width, rows.count},
      session_->operationTimeout);
}

Status BigMemory::copyAll(const std::vector<PoolCopy>& copies) const {
  const Deadline deadline(session_->operationTimeout);
  HMC_ASSIGN(const auto state, pool_->copier().start(copies, deadline));
  const Status outcome = state->wait(deadline);
  return state->done() ? outcome : state->cancel();
}

Status BigMemory::startAll(const std::vector<PoolCopy>& copies) {
  HMC_ASSIGN(auto state, pool_->copier().start(copies, session_->operationTimeout));
  std::lock_guard lock(mutex_);
  auto& mine = started_[std::this_thread::get_id()];
  // A thread that never waits must not fill the memory.
  while (!mine.empty() && mine.front()->done() && mine.front()->wait(Deadline::now()).ok())
    mine.pop_front();
  mine.push_back(std::move(state));
  return Status();
}

Status BigMemory::wait() {
  std::deque<std::shared_ptr<PoolCopyState>> mine;
  {
    std::lock_guard lock(mutex_);
    auto found = started_.extract(std::this_thread::get_id());
    if (!found.empty()) mine = std::move(found.mapped());
  }
  const Deadline deadline(session_->operationTimeout);
  Status first;
  for (const auto& state : mine) {
    Status outcome = state->wait(deadline);
    if (!state->done()) outcome = state->cancel();
    if (first.ok()) first = outcome;
  }
  return first;
}

}  // namespace hmc::capi
