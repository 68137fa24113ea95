#include "base/liveness.h"

#include <sys/syscall.h>
#include <unistd.h>

namespace hmc {

Liveness::Liveness(std::atomic<uint32_t>& word) : word_(word) {
  size_t size = 0;
  syscall(SYS_get_robust_list, 0, &before_, &size);
  list_.list.next = &entry_;
  entry_.next = &list_.list;
  list_.futex_offset = reinterpret_cast<char*>(&word) - reinterpret_cast<char*>(&entry_);
  word_.store(static_cast<uint32_t>(syscall(SYS_gettid)), std::memory_order_release);
  // Where the kernel does not know this, a death shows in what the kernel says to the next call.
  syscall(SYS_set_robust_list, &list_, sizeof(list_));
}

Liveness::~Liveness() {
  word_.store(0, std::memory_order_release);
  if (before_ != nullptr) syscall(SYS_set_robust_list, before_, sizeof(*before_));
}

}  // namespace hmc
