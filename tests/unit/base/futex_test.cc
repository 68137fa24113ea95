#include "base/futex.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <thread>

#include "base/fd.h"

namespace hmc {

namespace {
constexpr std::chrono::seconds kFutexPatience{30};
}

TEST(Futex, doesNotSleepWhenTheWordDiffers) {
  std::atomic<uint32_t> word{1};
  Deadline deadline(kFutexPatience);
  futexWait(word, 0, deadline);
  EXPECT_FALSE(deadline.passed());
}

TEST(Futex, sleepsNoLongerThanTheDeadline) {
  std::atomic<uint32_t> word{0};
  Deadline deadline(std::chrono::milliseconds(3));
  while (!deadline.passed()) futexWait(word, 0, deadline);
  futexWait(word, 0, Deadline::now());  // and a deadline that has passed is no sleep for ever
}

TEST(Futex, aWakeUpEndsTheSleep) {
  std::atomic<uint32_t> word{0};
  std::jthread waker([&] {
    word.store(1);
    futexWakeAll(word);
  });
  Deadline deadline(kFutexPatience);
  while (word.load() == 0 && !deadline.passed()) futexWait(word, 0, deadline);
  EXPECT_FALSE(deadline.passed());
}

TEST(Futex, worksThroughTwoMappingsOfOneFile) {
  Fd fd(memfd_create("futex", MFD_CLOEXEC));
  ASSERT_EQ(ftruncate(fd.get(), 4096), 0);
  auto map = [&] {
    void* at = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
    return static_cast<std::atomic<uint32_t>*>(at);
  };
  auto* here = map();
  auto* there = map();
  ASSERT_NE(static_cast<void*>(here), MAP_FAILED);
  ASSERT_NE(static_cast<void*>(there), MAP_FAILED);
  {
    std::jthread waker([&] {
      there->store(1);
      futexWakeAll(*there);
    });
    Deadline deadline(kFutexPatience);
    while (here->load() == 0 && !deadline.passed()) futexWait(*here, 0, deadline);
    EXPECT_FALSE(deadline.passed());
  }
  munmap(here, 4096);
  munmap(there, 4096);
}

}  // namespace hmc
