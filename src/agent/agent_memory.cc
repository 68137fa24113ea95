#include <algorithm>

#include "agent/agent.h"
#include "base/error.h"
#include "base/log.h"

// The memory that an agent registers.

namespace hmc::agent {

namespace {

// What one key of the store holds, well below the largest value.
constexpr size_t kMostOfCall = 65536;

}  // namespace

// Puts entries without a region where there is nothing yet, so that two threads do not register the
// same; answers those.
Result<std::vector<Memory>> Agent::reserve(std::span<const Memory> memory) {
  std::vector<Memory> left;
  const std::unique_lock lock(memoryMutex_);
  for (const Memory& one : memory) {
    const auto there = memory_.at(addressOf(one.data));
    if (there == memory_.end()) {
      memory_.add(addressOf(one.data), one.size, {nullptr, ++lastNumber_, 0, false});
      left.push_back(one);
      continue;
    }
    const auto inThisCall = [&] {
      return std::any_of(left.begin(), left.end(),
                         [&](const Memory& other) { return other.data == one.data; });
    };
    if (there->second.size == one.size && (there->second.value.region || inThisCall())) continue;
    Status why = there->second.size != one.size
                     ? error(Code::alreadyExists,
                             "{} is registered with {} bytes, not {}: deregister it first",
                             one.data, there->second.size, one.size)
                     : error(Code::alreadyExists, "another thread is registering {}", one.data);
    for (const Memory& reserved : left) memory_.erase(memory_.at(addressOf(reserved.data)));
    return why;
  }
  return left;
}

Status Agent::registerMemory(std::span<const Memory> memory) {
  HMC_ASSIGN(const auto left, reserve(memory));
  Status outcome;
  for (size_t first = 0; outcome.ok() && first < left.size(); first += kMostOfCall) {
    const auto part = std::span(left).subspan(first);
    outcome = registerReserved(part.first(std::min(part.size(), kMostOfCall)));
  }
  if (!outcome.ok()) undo(left);
  return outcome;
}

void Agent::undo(std::span<const Memory> reserved) {
  for (const Memory& one : reserved) {
    std::unique_lock lock(memoryMutex_);
    const auto at = memory_.at(addressOf(one.data));
    if (!at->second.value.region) {
      memory_.erase(at);
      continue;
    }
    lock.unlock();
    (void)takeBack(one.data, /*allocated=*/false);
  }
}

Status Agent::registerReserved(std::span<const Memory> memory) {
  std::vector<Local> made;
  made.reserve(memory.size());
  for (const Memory& one : memory) {
    uint64_t number = 0;
    {
      const std::shared_lock lock(memoryMutex_);
      number = memory_.at(addressOf(one.data))->second.value.number;
    }
    HMC_ASSIGN(auto region,
               node_.registerMemory(regionName(record_.incarnation, number), one.data, one.size));
    made.push_back({std::make_shared<const LocalRegion>(std::move(region)), number, 0, false});
  }
  return announce(std::move(made));
}

// Tells the store. When that fails nothing is registered: who made it lets it go.
Status Agent::announce(std::vector<Local> made) {
  std::vector<Registered> described;
  described.reserve(made.size());
  for (const Local& one : made)
    described.push_back({addressOf(one.region->data()), one.region->size(), one.number});
  uint64_t call = 0;
  {
    const std::unique_lock lock(memoryMutex_);
    call = ++lastCall_;
  }
  HMC_TRY(store_->client->set(memoryKey(options_.id, record_.incarnation, call), encode(described),
                              options_.timeout, lease_));
  const std::unique_lock lock(memoryMutex_);
  callSizes_[call] = made.size();
  for (Local& one : made) {
    one.call = call;
    const uint64_t begin = addressOf(one.region->data());
    const auto reserved = memory_.at(begin);
    if (reserved != memory_.end()) {
      reserved->second.value = std::move(one);
    } else {
      const uint64_t size = one.region->size();
      memory_.add(begin, size, std::move(one));
    }
  }
  return Status();
}

Result<Agent::Local> Agent::takeOut(const void* data, bool allocated) {
  const std::unique_lock lock(memoryMutex_);
  const auto found = memory_.at(addressOf(data));
  if (found == memory_.end() || !found->second.value.region)
    return error(Code::notFound, "no memory is registered at {}", data);
  if (found->second.value.allocated != allocated) {
    return error(
        Code::invalidArgument, "the memory at {} was {}", data,
        allocated ? "registered, not allocated here: deregister it" : "allocated here: free it");
  }
  Local local = std::move(found->second.value);
  memory_.erase(found);
  return local;
}

Status Agent::takeBack(const void* data, bool allocated) {
  HMC_ASSIGN(const Local local, takeOut(data, allocated));
  Status taken = local.region->revoke(options_.timeout);
  {
    const std::unique_lock lock(memoryMutex_);
    if (--callSizes_[local.call] > 0) return taken;
    callSizes_.erase(local.call);
  }
  // Who asks the store until then is refused by our Node.
  const Status told = store_->client->remove(
      memoryKey(options_.id, record_.incarnation, local.call), options_.timeout);
  if (!told.ok()) logWarn("engine {}: {}", options_.id, told.message());
  return taken;
}

Result<void*> Agent::allocate(size_t size) {
  uint64_t number = 0;
  {
    const std::unique_lock lock(memoryMutex_);
    number = ++lastNumber_;
  }
  HMC_ASSIGN(auto region,
             node_.allocate(regionName(record_.incarnation, number), size, options_.device));
  void* const data = region.data();
  HMC_TRY(announce({{std::make_shared<const LocalRegion>(std::move(region)), number, 0, true}}));
  return data;
}

}  // namespace hmc::agent
