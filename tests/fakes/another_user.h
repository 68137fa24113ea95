#pragma once

#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <thread>

namespace hmc::test {

inline constexpr uid_t kAnotherUser = 65534;

// Runs `what` as another user, on a thread of its own: to the kernel, a user is a thread's. Only
// root can.
template <class What>
void asAnotherUser(What what) {
  std::thread([&] {
    // Not the C library's call, which changes all threads.
    ASSERT_EQ(syscall(SYS_setresuid, kAnotherUser, kAnotherUser, kAnotherUser), 0);
    what();
  }).join();
}

}  // namespace hmc::test
