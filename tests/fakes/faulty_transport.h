#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>

#include "hmc/result.h"
#include "transport/transport.h"

namespace hmc::fakes {

// What goes wrong, decided by a test before or while the transport works. Safe from any thread.
class Faults {
 public:
  // Operations end that many progress() calls after they really did.
  std::atomic<uint32_t> delay{0};
  // post() takes no more than that many operations at a time; 0 lets none through.
  std::atomic<size_t> mostPerPost{SIZE_MAX};
  // While set, no operation ends unless its link is closed.
  std::atomic<bool> stalled{false};

  // The nth operation from now on (1: the next one) fails and moves nothing.
  void failNth(uint64_t n, const Status& why);
  // The peer is gone: every link fails what is pending and what comes.
  void die(const Status& why);

  // For the transport: the Status that this operation fails with, ok for most.
  Status fateOfNextOp();
  Status dead() const;

 private:
  mutable std::mutex mutex_;  // guards what follows
  uint64_t countdown_ = 0;
  Status fate_;
  Status dead_;
};

// Any transport, with faults.
std::unique_ptr<Transport> makeFaulty(std::unique_ptr<Transport> inner,
                                      std::shared_ptr<Faults> faults);

}  // namespace hmc::fakes
