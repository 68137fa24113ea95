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

  // One round: polls the transport, or sleeps while another thread does, until something may have
  // changed for `completion` or the deadline passes. The caller looks and comes back.
  void round(const Completion& completion, Deadline deadline);
  // The same until something may have changed at all; does not sleep while there is `news`.
  void round(const std::atomic<bool>& news, Deadline deadline);

  // Something changed outside of Transport::progress(): ends the rounds that are under way.
  void kick();

 private:
  void poll(std::unique_lock<std::mutex>& lock, Deadline until);

  Transport& transport_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool polling_ = false;  // guarded by mutex_
  int sleepers_ = 0;      // guarded by mutex_
  uint64_t rounds_ = 0;   // guarded by mutex_
};

}  // namespace hmc
