#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "node/exported_memory.h"

namespace hmc {

// The memory of a Node that peers can open, by name. Safe from any thread.
class MemoryTable {
 public:
  // `owner` is the Node's name, for sentences.
  explicit MemoryTable(std::string owner) : owner_(std::move(owner)) {}

  using Memory = std::shared_ptr<ExportedMemory>;
  // alreadyExists while another has that name.
  Status add(const Memory& memory);
  Result<Memory> find(const std::string& name) const;
  // The same if it is still the one of that number.
  Result<Memory> find(const std::string& name, uint64_t number) const;

  // Frees the name, and takes the memory back from all peers: see ExportedMemory::revoke().
  Status revoke(const Memory& memory, std::chrono::nanoseconds timeout);
  // A peer has let go of a memory that is being revoked.
  void released(const PeerState& peer, uint64_t number);
  void left(const PeerState& peer);

 private:
  std::map<uint64_t, Memory> revoking() const;

  const std::string owner_;
  mutable std::mutex mutex_;
  std::map<std::string, Memory> byName_;  // guarded by mutex_
  std::map<uint64_t, Memory> revoking_;   // guarded by mutex_
};

}  // namespace hmc
