#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/fd.h"
#include "hmc/result.h"
#include "memory/region.h"
#include "transport/ipc/shared_block.h"

// A process that is stopped in the middle of a copy into memory that it has mapped cannot be asked
// to let go, and would go on with the copy when it continues. So it hands the owner of the memory a
// descriptor (userfaultfd) with which the owner makes the mapping read-only from outside: a thread
// that writes there then waits until its own process has put other pages in that place.
// docs/decisions/015-taking-mapped-memory-back.md says why this way.
namespace hmc::ipc {

// A range of addresses of the process that has mapped it. That process takes it from unused to
// mapped and back; the owner from mapped to protecting to readOnly.
struct GuardedRange {
  enum State : uint32_t { unused, mapped, protecting, readOnly };
  std::atomic<uint32_t> state;
  std::atomic<uint64_t> address;
  std::atomic<uint64_t> size;
};

// Shared by the two processes. Zero is a good start.
struct GuardTable {
  static constexpr size_t kRanges = 1024;
  GuardedRange ranges[kRanges];
};

// On the side that maps: what one link has mapped. Safe from any thread.
class MappingGuard {
 public:
  // Unsupported where the kernel has no such descriptor for us.
  static Result<std::shared_ptr<MappingGuard>> create();

  // What the owner needs for its PeerMappings: the descriptor and the table.
  Result<std::vector<Fd>> share() const;

  // From now on the owner may protect these pages; null when the table is full.
  GuardedRange* add(const Region& pages);
  // Before it is unmapped. False when the owner is about to protect it and does not get on: then
  // nothing else may ever lie at that address.
  static bool remove(GuardedRange& range);
  // The owner cannot protect it any more; or it has begun to, and the answer is true: then no
  // thread may write there before other pages lie there and wake() was called.
  static bool isTaken(GuardedRange& range);
  // Of one that is taken: until the owner has done it. False when it does not get on.
  static bool awaitOwner(GuardedRange& range);
  void wake(const GuardedRange& range) const;

 private:
  MappingGuard(Fd handle, SharedBlock<GuardTable> table)
      : handle_(std::move(handle)), table_(std::move(table)) {}
  const Fd handle_;
  const SharedBlock<GuardTable> table_;
};

// On the owner's side: what the peer of one link has mapped.
class PeerMappings {
 public:
  // What MappingGuard::share() gave.
  static Result<PeerMappings> attach(std::vector<Fd> fds);

  // Once it returns, nothing is written through them any more. Takes some ten milliseconds for a
  // gigabyte that the peer has touched, and nothing when its process is gone.
  void protect();

 private:
  PeerMappings(Fd handle, SharedBlock<GuardTable> table)
      : handle_(std::move(handle)), table_(std::move(table)) {}
  Fd handle_;
  SharedBlock<GuardTable> table_;
};

}  // namespace hmc::ipc
