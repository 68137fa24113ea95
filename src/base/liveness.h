#pragma once

#include <linux/futex.h>

#include <atomic>
#include <cstdint>

namespace hmc {

// Keeps the calling thread's number in a word of shared memory for as long as the thread lives. The
// kernel clears the word when the thread ends, however it ends, and before its process number can
// be given to another process. Others learn of a death by reading memory; asking the kernel would
// double the cost of a small transfer.
//
// Uses the thread's list of robust futexes: one Liveness per thread, on a thread that locks no
// robust mutex.
class Liveness {
 public:
  explicit Liveness(std::atomic<uint32_t>& word);
  ~Liveness();
  Liveness(const Liveness&) = delete;
  Liveness& operator=(const Liveness&) = delete;

 private:
  std::atomic<uint32_t>& word_;
  robust_list_head* before_ = nullptr;
  robust_list entry_{};
  robust_list_head list_{};
};

// False also before a Liveness was made for the word.
inline bool isAlive(const std::atomic<uint32_t>& word) {
  return (word.load(std::memory_order_acquire) & FUTEX_TID_MASK) != 0;
}

}  // namespace hmc
