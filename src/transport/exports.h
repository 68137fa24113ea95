#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "transport/check.h"

namespace hmc {

// Memory that peers may reach, as software at the target knows it. Safe from any thread.
class Export {
 public:
  Export(const Region& what, Access allowed) : region(what), access(allowed) {}

  // May a peer do that to it?
  Status check(OpKind kind, uint64_t offset, uint64_t size) const {
    return checkRange(kind, offset, size, region.size, access);
  }
  // To be held while bytes of it move, one piece at a time. Not locked when the memory is no longer
  // exported: then touch none of it.
  std::unique_lock<std::mutex> hold();
  // What to answer then.
  static Status removed(OpKind kind, uint64_t size);

  const Region region;
  const Access access;

 private:
  friend class Exports;
  std::mutex mutex_;
  std::atomic<bool> removed_{false};
};

// The memory that one transport exports, by numbers that cannot be guessed: a peer reaches what it
// was given a key for. Safe from any thread.
class Exports {
 public:
  uint64_t add(const Region& region, Access access);
  // Once it returns, no byte of the memory is read or written any more.
  void remove(uint64_t id);
  std::shared_ptr<Export> find(uint64_t id);

  // For a piece that moves at once: finds it, checks it and calls move(Region) while holding it.
  template <class Move>
  Status use(uint64_t id, OpKind kind, uint64_t offset, uint64_t size, Move&& move) {
    const std::shared_ptr<Export> found = find(id);
    if (!found) return Export::removed(kind, size);
    if (Status status = found->check(kind, offset, size); !status.ok()) return status;
    const auto held = found->hold();
    if (!held) return Export::removed(kind, size);
    return move(found->region.slice(offset, size));
  }

 private:
  std::mutex mutex_;
  std::unordered_map<uint64_t, std::shared_ptr<Export>> exports_;  // guarded by mutex_
};

}  // namespace hmc
