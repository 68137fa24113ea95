#include "memory/cpu/shared_memory.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <atomic>
#include <thread>

namespace hmc {
namespace {

constexpr size_t kMega = size_t{1} << 20;

Fd memfdOf(size_t size, int seals) {
  Fd fd(memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  EXPECT_EQ(ftruncate(fd.get(), static_cast<off_t>(size)), 0);
  EXPECT_EQ(fcntl(fd.get(), F_ADD_SEALS, seals), 0);
  return fd;
}

TEST(SharedMemory, cannotBeResizedByWhoHasTheDescriptor) {
  auto memory = createSharedMemory(10000);
  ASSERT_TRUE(memory.ok());
  EXPECT_NE(ftruncate(memory->fd.get(), 1), 0);
  EXPECT_NE(ftruncate(memory->fd.get(), 1 << 20), 0);
  EXPECT_NE(fcntl(memory->fd.get(), F_ADD_SEALS, F_SEAL_FUTURE_WRITE), 0);
}

TEST(SharedMemory, isClosedOnExec) {
  auto memory = createSharedMemory(1);
  ASSERT_TRUE(memory.ok());
  EXPECT_NE(fcntl(memory->fd.get(), F_GETFD) & FD_CLOEXEC, 0);
}

// Holds with and without huge pages on the machine: neither may fault.
TEST(SharedMemory, canBeTouchedEverywhereAtMultiplesOfAHugePage) {
  for (size_t size : {2 * kMega, 6 * kMega, 3 * kMega, 2 * kMega + 1}) {
    auto memory = createSharedMemory(size);
    ASSERT_TRUE(memory.ok());
    ASSERT_GE(memory->mapping.size(), size);
    for (size_t at = 0; at < size; at += 4096) ASSERT_EQ(memory->mapping.get()[at]++, 0);
  }
}

TEST(SharedMemory, mapsAnyWindowOfAnySize) {
  for (size_t size : {size_t{10000}, 4 * kMega}) {
    auto memory = createSharedMemory(size);
    ASSERT_TRUE(memory.ok());
    memory->mapping.get()[size - 1] = 'z';
    memory->mapping.get()[4097] = 'b';
    auto tail = mapWindow(memory->fd.get(), size - 1, 1);
    ASSERT_TRUE(tail.ok()) << tail.status().toString();
    EXPECT_EQ(*tail->ptr, 'z');
    auto middle = mapWindow(memory->fd.get(), 4097, 100);
    ASSERT_TRUE(middle.ok()) << middle.status().toString();
    EXPECT_EQ(*middle->ptr, 'b');
  }
}

TEST(SharedMemory, refusesADescriptorThatCanShrink) {
  Fd fd = memfdOf(8192, F_SEAL_GROW);
  auto window = mapWindow(fd.get(), 0, 8192);
  ASSERT_FALSE(window.ok());
  EXPECT_EQ(window.status().code(), Code::permissionDenied);
}

TEST(SharedMemory, refusesADescriptorThatIsNoMemory) {
  Fd null(open("/dev/null", O_RDWR | O_CLOEXEC));
  EXPECT_FALSE(mapWindow(null.get(), 0, 1).ok());
  EXPECT_FALSE(mapWindow(-1, 0, 1).ok());
}

TEST(SharedMemory, refusesWindowsThatPassTheEndEvenWhenTheSumWraps) {
  Fd fd = memfdOf(8192, F_SEAL_SHRINK);
  EXPECT_TRUE(mapWindow(fd.get(), 0, 8192).ok());
  for (auto [offset, size] : {std::pair<uint64_t, uint64_t>{0, 8193},
                              {8192, 1},
                              {8191, 2},
                              {~uint64_t{0} - 7, 16},
                              {16, ~uint64_t{0} - 7}}) {
    auto window = mapWindow(fd.get(), offset, size);
    ASSERT_FALSE(window.ok()) << offset << " " << size;
    EXPECT_EQ(window.status().code(), Code::outOfRange);
    EXPECT_NE(window.status().message().find("8192"), std::string::npos);
  }
  EXPECT_EQ(mapWindow(fd.get(), 0, 0).status().code(), Code::invalidArgument);
}

TEST(SharedMemory, refusesMoreThanTheMachineHas) {
  auto memory = createSharedMemory(size_t{1} << 50);
  ASSERT_FALSE(memory.ok());
  EXPECT_EQ(memory.status().code(), Code::exhausted);
}

// Without huge pages in reserve, a mapping of them is refused after the kernel has made room for
// it: what others put there meanwhile is theirs.
TEST(SharedMemory, leavesWhatOthersMapMeanwhileAlone) {
  constexpr size_t kTheirs = 4 * kMega;
  constexpr int kRounds = 5000;
  std::atomic<bool> over{false};
  std::thread other([&] {
    while (!over.load()) {
      void* theirs =
          mmap(nullptr, kTheirs, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      ASSERT_NE(theirs, MAP_FAILED);
      auto* word = static_cast<volatile uint64_t*>(theirs);
      *word = 7;
      sched_yield();
      ASSERT_EQ(*word, 7u) << "somebody mapped something else here";
      munmap(theirs, kTheirs);
    }
  });
  for (int round = 0; round < kRounds && !testing::Test::HasFailure(); ++round)
    ASSERT_TRUE(createSharedMemory(16 * kMega).ok());
  over.store(true);
  other.join();
}

}  // namespace
}  // namespace hmc
