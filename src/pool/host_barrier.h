#pragma once

#include <atomic>
#include <cstdint>

#include "hmc/deadline.h"
#include "hmc/result.h"
#include "pool/control_page.h"
#include "pool/members.h"

namespace hmc::pool {

// A barrier of ranks that have mapped each other's control pages: in round k everyone signals the
// rank 2^k further on, so that after log2(n) rounds all know of all. Waits by spinning a little
// where every rank has a core, then sleeps. For one thread at a time.
class HostBarrier {
 public:
  // `own` is our control page, and `members` has everyone's in their host slots. Both outlive it.
  HostBarrier(Members& members, ControlPage& own, uint32_t rank, uint32_t ranks);

  // deadlineExceeded, or disconnected when a rank is gone that had not come, or cancelled. A call
  // that failed may be repeated: it is the same barrier.
  Status wait(Deadline deadline);
  // Ends a wait() of another thread, and all later ones.
  void interrupt() { interrupted_.store(true); }
  // Tells the others which barriers we have passed, before we leave.
  void depart();

 private:
  void signal(uint32_t rank, size_t round, uint32_t number) const;
  Status await(size_t round, uint32_t number, Deadline deadline) const;
  Status checkOthers(uint32_t number) const;

  Members& members_;
  ControlPage& own_;
  const uint32_t rank_;
  const uint32_t ranks_;
  const uint32_t spins_;
  uint32_t passed_ = 0;
  std::atomic<bool> interrupted_{false};
};

}  // namespace hmc::pool
