#include "pool/host_barrier.h"

#include <sched.h>

#include <algorithm>

#include "base/error.h"
#include "base/futex.h"
#include "base/relax.h"

namespace hmc::pool {

namespace {

// A rank that died is noticed by others' connections to it; a sleeper looks this often.
constexpr std::chrono::milliseconds kLook{20};

// Some tens of microseconds, where no rank needs the core of another.
uint32_t spinsFor(uint32_t ranks) {
  constexpr uint32_t kSpins = 2000;
  cpu_set_t cores;
  if (sched_getaffinity(0, sizeof(cores), &cores) != 0) return 0;
  return static_cast<uint32_t>(CPU_COUNT(&cores)) >= ranks ? kSpins : 0;
}

// Numbers may pass zero.
bool reached(uint32_t value, uint32_t number) {
  return static_cast<int32_t>((value & ~1U) - 2 * number) >= 0;
}

}  // namespace

HostBarrier::HostBarrier(Members& members, ControlPage& own, uint32_t rank, uint32_t ranks)
    : members_(members), own_(own), rank_(rank), ranks_(ranks), spins_(spinsFor(ranks)) {}

void HostBarrier::signal(uint32_t rank, size_t round, uint32_t number) const {
  const SlotUse use(members_.slot({PoolSpace::host, rank, 0}));
  if (!use || !use->data) return;
  auto& word = reinterpret_cast<ControlPage*>(use->data)->signals[round].value;
  if ((word.exchange(2 * number) & 1) != 0) futexWakeAll(word);
}

Status HostBarrier::await(size_t round, uint32_t number, Deadline deadline) const {
  auto& word = own_.signals[round].value;
  for (uint32_t i = 0; i < spins_; ++i) {
    if (reached(word.load(std::memory_order_acquire), number)) return Status();
    relax();
  }
  while (true) {
    uint32_t value = word.load();
    if (reached(value, number)) return Status();
    if (!word.compare_exchange_strong(value, value | 1)) continue;
    futexWait(word, value | 1, earlier(deadline, kLook));
    if (reached(word.load(), number)) return Status();
    if (interrupted_.load()) {
      return error(Code::cancelled, "another thread destroys the object of this barrier");
    }
    HMC_TRY(checkOthers(number));
    if (deadline.passed()) {
      return error(Code::deadlineExceeded, "not all of {} ranks came to the barrier in time",
                   ranks_);
    }
  }
}

// Who left after this barrier has signalled everything that we wait for.
Status HostBarrier::checkOthers(uint32_t number) const {
  const auto here = members_.ranks();
  for (uint32_t rank = 0; rank < ranks_; ++rank) {
    if (std::binary_search(here.begin(), here.end(), rank)) continue;
    const uint32_t departed = own_.departed()[rank].load();
    if (departed != 0 && static_cast<int32_t>(departed - 1 - number) >= 0) continue;
    return error(Code::disconnected, "rank {} is gone and did not come to the barrier", rank);
  }
  return Status();
}

Status HostBarrier::wait(Deadline deadline) {
  const uint32_t number = passed_ + 1;
  size_t round = 0;
  for (uint32_t distance = 1; distance < ranks_; distance *= 2, ++round) {
    signal((rank_ + distance) % ranks_, round, number);
    HMC_TRY(await(round, number, deadline));
  }
  passed_ = number;
  return Status();
}

void HostBarrier::depart() {
  for (uint32_t rank = 0; rank < ranks_; ++rank) {
    const SlotUse use(members_.slot({PoolSpace::host, rank, 0}));
    if (use && use->data) {
      reinterpret_cast<ControlPage*>(use->data)->departed()[rank_].store(1 + passed_);
    }
  }
}

}  // namespace hmc::pool
