#include "memory/populate.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "memory/available_memory.h"
#include "memory/cpu/cpu_backend.h"

namespace hmc {
namespace {

using std::chrono::seconds;

constexpr size_t kTouched = 4096;
constexpr size_t kMebibyte = size_t{1} << 20;

// Pages that this process had to be given while it wrote to each page of `region`.
long faultsOfTouching(const Region& region) {
  rusage before{};
  rusage after{};
  getrusage(RUSAGE_SELF, &before);
  for (size_t at = 0; at < region.size; at += kTouched) *region.at(at) = 1;
  getrusage(RUSAGE_SELF, &after);
  return after.ru_minflt - before.ru_minflt;
}

// MADV_POPULATE_WRITE came with Linux 5.14.
bool kernelPopulates() {
  constexpr int kPopulateWrite = 23;
  alignas(kTouched) static char page[kTouched];
  return madvise(page, kTouched, kPopulateWrite) == 0;
}

bool isThere(const Region& region, size_t at) {
  unsigned char resident = 0;
  return mincore(region.at(at / kTouched * kTouched), kTouched, &resident) == 0 &&
         (resident & 1) != 0;
}

Region regionOf(const SharedMemory& memory) {
  return {memory.mapping.get(), memory.mapping.size(), Device{}};
}

TEST(Population, memoryThatItAllocatesCostsTheFirstTransferNoPageFaults) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the sanitizer touches more pages of its own than we do";
#endif
  if (!kernelPopulates()) GTEST_SKIP() << "this kernel cannot populate memory";
  CpuBackend backend;
  constexpr size_t kSize = size_t{32} << 20;
  Region region = *backend.allocate(0, kSize - kTouched);
  // A sanitizer's own pages are an eighth.
  EXPECT_LT(faultsOfTouching(region), static_cast<long>(kSize / kTouched / 4));
}

TEST(Population, providesEveryPageOfALargeRegion) {
  if (!kernelPopulates()) GTEST_SKIP() << "this kernel cannot populate memory";
  auto memory = createSharedMemory(96 * kMebibyte + 3 * kTouched);
  ASSERT_TRUE(memory.ok());
  const Population pages(regionOf(*memory), Access::readWrite, Population::From::start);
  ASSERT_TRUE(pages.wait(seconds(60)));
  for (size_t at = 0; at < memory->mapping.size(); at += kTouched) {
    ASSERT_TRUE(isThere(regionOf(*memory), at)) << at;
  }
}

TEST(Population, ofAnOwnerAndOfAPeerMeet) {
  if (!kernelPopulates()) GTEST_SKIP() << "this kernel cannot populate memory";
  auto memory = createSharedMemory(160 * kMebibyte);
  ASSERT_TRUE(memory.ok());
  auto window = mapWindow(memory->fd.get(), 0, memory->mapping.size());
  ASSERT_TRUE(window.ok());
  const Region there{window->ptr, memory->mapping.size(), Device{}};
  const Population owners(regionOf(*memory), Access::readWrite, Population::From::start);
  const Population peers(there, Access::read, Population::From::end);
  ASSERT_TRUE(owners.wait(seconds(60)));
  ASSERT_TRUE(peers.wait(seconds(60)));
  // A sanitizer's own pages are an eighth.
  EXPECT_LT(faultsOfTouching(there), static_cast<long>(there.size / kTouched / 4));
}

TEST(Population, leavesWhatIsWrittenMeanwhile) {
  auto memory = createSharedMemory(96 * kMebibyte);
  ASSERT_TRUE(memory.ok());
  const Region region = regionOf(*memory);
  const Population pages(region, Access::readWrite, Population::From::start);
  for (size_t at = region.size; at >= kTouched; at -= kTouched) {
    *reinterpret_cast<size_t*>(region.at(at - kTouched)) = at;
  }
  ASSERT_TRUE(pages.wait(seconds(60)));
  for (size_t at = region.size; at >= kTouched; at -= kTouched) {
    ASSERT_EQ(*reinterpret_cast<size_t*>(region.at(at - kTouched)), at);
  }
}

TEST(Population, endsWithItsOwner) {
  auto memory = createSharedMemory(512 * kMebibyte);
  ASSERT_TRUE(memory.ok());
  {
    const Population pages(regionOf(*memory), Access::readWrite, Population::From::start);
    pages.stop();
  }
  EXPECT_FALSE(isThere(regionOf(*memory), 510 * kMebibyte));
}

TEST(Population, leavesMemoryThatTheMachineCanHardlySpare) {
  CpuBackend backend;
  auto region = backend.allocate(0, availableMemory() / 5 * 4);
  if (!region.ok()) GTEST_SKIP() << region.status().message();
  EXPECT_FALSE(isThere(*region, 0));
}

TEST(Population, letsAChildOfAForkReleaseWhatItsParentStillProvides) {
  auto memory = createSharedMemory(512 * kMebibyte);
  ASSERT_TRUE(memory.ok());
  Population pages(regionOf(*memory), Access::readWrite, Population::From::start);
  const pid_t child = fork();
  if (child == 0) {
    pages = {};
    _exit(0);
  }
  pages.stop();
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

// A machine in a folder, with a control group in another one.
class AvailableMemory : public testing::Test {
 protected:
  void SetUp() override {
    write("proc/meminfo", "MemTotal: 9000 kB\nMemAvailable: 4000 kB\n");
    write("proc/self/cgroup", "0::/box/app\n");
  }
  void TearDown() override { std::filesystem::remove_all(root_); }
  void write(const std::string& path, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(root_ + "/" + path).parent_path());
    std::ofstream(root_ + "/" + path) << text;
  }
  const std::string root_ = testing::TempDir() + "hmc-available-memory-" + std::to_string(getpid());
};

TEST_F(AvailableMemory, isTheMachinesWithoutALimit) {
  write("sys/fs/cgroup/box/memory.max", "max\n");
  write("sys/fs/cgroup/box/memory.current", "100\n");
  EXPECT_EQ(availableMemory(root_), 4000 * 1024);
}

TEST_F(AvailableMemory, isWhatTheControlGroupsAboveLeave) {
  write("sys/fs/cgroup/box/app/memory.max", "max\n");
  write("sys/fs/cgroup/box/app/memory.current", "100\n");
  write("sys/fs/cgroup/box/memory.max", "1000000\n");
  write("sys/fs/cgroup/box/memory.current", "700000\n");
  write("sys/fs/cgroup/box/memory.stat", "anon 500000\ninactive_file 200000\n");
  EXPECT_EQ(availableMemory(root_), 500000);
}

TEST_F(AvailableMemory, isNothingAboveTheLimit) {
  write("sys/fs/cgroup/memory.max", "1000\n");
  write("sys/fs/cgroup/memory.current", "2000\n");
  EXPECT_EQ(availableMemory(root_), 0);
}

TEST_F(AvailableMemory, knowsTheFirstGenerationOfControlGroups) {
  write("proc/self/cgroup", "5:cpu,memory:/box\n4:pids:/box\n");
  write("sys/fs/cgroup/memory/box/memory.limit_in_bytes", "1000000\n");
  write("sys/fs/cgroup/memory/box/memory.usage_in_bytes", "400000\n");
  EXPECT_EQ(availableMemory(root_), 600000);
}

}  // namespace
}  // namespace hmc
