#include "base/futex.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#include <ctime>

namespace hmc {

static_assert(sizeof(std::atomic<uint32_t>) == sizeof(uint32_t));

void futexWait(const std::atomic<uint32_t>& word, uint32_t expected, Deadline deadline) {
  auto left = deadline.left();
  if (left.count() <= 0) return;
  timespec timeout{};
  timespec* timeoutPtr = nullptr;
  if (left != std::chrono::nanoseconds::max()) {
    timeout.tv_sec = static_cast<time_t>(left.count() / 1000000000);
    timeout.tv_nsec = static_cast<long>(left.count() % 1000000000);
    timeoutPtr = &timeout;
  }
  syscall(SYS_futex, &word, FUTEX_WAIT, expected, timeoutPtr, nullptr, 0);
}

void futexWakeAll(const std::atomic<uint32_t>& word) {
  syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace hmc
