#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <thread>

#include "fakes/refused_calls.h"
#include "transport/ipc/mapping_guard.h"

namespace hmc::ipc {
namespace {

// Whether a write to any page of these bytes would wait for an owner of userfaultfd.
bool isProtected(const char* bytes, size_t size) {
  const auto begin = reinterpret_cast<uintptr_t>(bytes);
  std::ifstream file("/proc/self/smaps");
  bool inside = false;
  for (std::string line; std::getline(file, line);) {
    unsigned long first = 0, end = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx ", &first, &end) == 2) {
      inside = first < begin + size && end > begin;
    } else if (inside && line.rfind("VmFlags:", 0) == 0 && line.find(" uw") != std::string::npos) {
      return true;
    }
  }
  return false;
}

class Protecting : public testing::Test {
 protected:
  static constexpr size_t kBlock = size_t{8} << 20;

  void SetUp() override {
    auto made = MappingGuard::create();
    if (!made.ok()) GTEST_SKIP() << made.status().toString();
    guard_ = *std::move(made);
    void* at = mmap(nullptr, kBlock, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(at, MAP_FAILED);
    block_ = static_cast<char*>(at);
  }
  void TearDown() override { munmap(block_, block_ ? kBlock : 0); }
  void protect() {
    auto mappings = PeerMappings::attach(guard_->share().value());
    ASSERT_TRUE(mappings.ok()) << mappings.status().toString();
    mappings->protect();
  }

  std::shared_ptr<MappingGuard> guard_;
  char* block_ = nullptr;
};

TEST_F(Protecting, holdsForThePagesOfAMappingAlone) {
  constexpr size_t kAt = 4096, kSize = 65536;
  ASSERT_NE(guard_->add({block_ + kAt, kSize, Device{}}), nullptr);
  protect();
  EXPECT_TRUE(isProtected(block_ + kAt, kSize));
  EXPECT_FALSE(isProtected(block_, kAt));
  EXPECT_FALSE(isProtected(block_ + kAt + kSize, kBlock - kAt - kSize));
}

// Stacks and other mappings lie beside it: threads would wait there, and the kernel ends a process
// whose thread's own page it cannot write.
TEST_F(Protecting, ofAMappingThatIsGoneTouchesNothing) {
  constexpr size_t kAt = size_t{4} << 20, kSize = 65536;
  ASSERT_NE(guard_->add({block_ + kAt, kSize, Device{}}), nullptr);
  ASSERT_EQ(munmap(block_ + kAt, kSize), 0);
  protect();
  EXPECT_FALSE(isProtected(block_, kBlock));
}

// Docker's default profile refuses the system call; the device can be given to a container.
TEST(MappingGuard, takesTheDeviceWhereTheSystemCallIsRefused) {
  if (access("/dev/userfaultfd", R_OK | W_OK) != 0)
    GTEST_SKIP() << "this machine has no /dev/userfaultfd for us";
  Status made;
  bool refused = false;
  std::thread([&] {
    refused = test::refuseCalls({SYS_userfaultfd});
    made = MappingGuard::create().status();
  }).join();
  if (!refused) GTEST_SKIP() << "this machine does not let us refuse a system call";
  EXPECT_TRUE(made.ok()) << made.toString();
}

TEST(MappingGuard, saysWhatIsMissing) {
  Status made;
  std::thread([&] {
    if (test::refuseCalls({SYS_userfaultfd, SYS_openat})) {
      made = MappingGuard::create().status();
    }
  }).join();
  if (made.ok()) GTEST_SKIP() << "this machine does not let us refuse a system call";
  EXPECT_EQ(made.code(), Code::unsupported);
  EXPECT_NE(made.message().find("/dev/userfaultfd"), std::string::npos) << made.toString();
}

}  // namespace
}  // namespace hmc::ipc
