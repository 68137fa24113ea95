#include "node/memory_table.h"

#include "base/error.h"

namespace hmc {

Status MemoryTable::add(const Memory& memory) {
  std::lock_guard lock(mutex_);
  if (byName_.emplace(memory->name(), memory).second) return Status();
  return error(Code::alreadyExists,
               "a region called \"{}\" is registered already: choose another name", memory->name());
}

Result<MemoryTable::Memory> MemoryTable::find(const std::string& name) const {
  std::lock_guard lock(mutex_);
  if (auto found = byName_.find(name); found != byName_.end()) return found->second;
  std::string names;
  for (const auto& [known, memory] : byName_)
    names += (names.empty() ? "\"" : ", \"") + known + "\"";
  return error(Code::notFound, "{} has no region called \"{}\"; it has {}", owner_, name,
               names.empty() ? "none" : names);
}

Result<MemoryTable::Memory> MemoryTable::find(const std::string& name, uint64_t number) const {
  std::lock_guard lock(mutex_);
  auto found = byName_.find(name);
  if (found != byName_.end() && found->second->number() == number) return found->second;
  return error(Code::notFound, "{} no longer has the region \"{}\" that was opened", owner_, name);
}

Status MemoryTable::revoke(const Memory& memory, std::chrono::nanoseconds timeout) {
  {
    std::lock_guard lock(mutex_);
    auto found = byName_.find(memory->name());
    if (found != byName_.end() && found->second == memory) byName_.erase(found);
    revoking_.emplace(memory->number(), memory);
  }
  Status status = memory->revoke(timeout);
  std::lock_guard lock(mutex_);
  revoking_.erase(memory->number());
  return status;
}

std::map<uint64_t, MemoryTable::Memory> MemoryTable::revoking() const {
  std::lock_guard lock(mutex_);
  return revoking_;
}

void MemoryTable::released(const PeerState& peer, uint64_t number) {
  const auto all = revoking();
  if (auto found = all.find(number); found != all.end()) found->second->released(peer);
}

void MemoryTable::left(const PeerState& peer) {
  for (const auto& [number, memory] : revoking()) memory->left(peer);
}

}  // namespace hmc
