#pragma once

#include <linux/futex.h>

#include <atomic>
#include <cstdint>

namespace hmc {

// Shows in a word of shared memory that the thread lives that made this: the word holds the
// thread's number, and the kernel takes it out when the thread ends, in whatever way, before the
// number of its process can be given to another one. So other processes learn of a death by looking
// at memory, where asking the kernel would double the cost of a small transfer.
//
// Uses the thread's list of robust futexes: one Pulse per thread, on a thread that locks no robust
// mutex.
class Pulse {
 public:
  explicit Pulse(std::atomic<uint32_t>& word);
  ~Pulse();
  Pulse(const Pulse&) = delete;
  Pulse& operator=(const Pulse&) = delete;

 private:
  std::atomic<uint32_t>& word_;
  robust_list_head* before_ = nullptr;
  robust_list entry_{};
  robust_list_head list_{};
};

// False also before a Pulse was made over the word.
inline bool beats(const std::atomic<uint32_t>& word) {
  return (word.load(std::memory_order_acquire) & FUTEX_TID_MASK) != 0;
}

}  // namespace hmc
