#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>

#include "transport/transport.h"

namespace hmc {

// Lets many threads wait on one transport while one of them at a time polls it.
class Poller {
 public:
  explicit Poller(Transport& transport) : transport_(transport) {}

  // How often kick() was called. Read it, look for something to do, and only then wait in round():
  // a kick in between is not lost.
  uint64_t kicks() const { return kicks_.load(std::memory_order_acquire); }

  // One round: polls the transport, or sleeps while another thread does, until something may have
  // changed or the deadline passes. Does not sleep when there was a kick since `seen`, or when the
  // completion that the caller waits for, if it is one, is done. The caller looks and comes back.
  void round(const Completion* completion, uint64_t seen, Deadline deadline);

  // Something changed outside of Transport::progress(): ends the rounds that are under way.
  void kick();

 private:
  Transport& transport_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool polling_ = false;            // guarded by mutex_
  int sleepers_ = 0;                // guarded by mutex_
  uint64_t rounds_ = 0;             // guarded by mutex_
  std::atomic<uint64_t> kicks_{0};  // written with mutex_ held
};

}  // namespace hmc
