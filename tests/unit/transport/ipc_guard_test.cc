#include <gtest/gtest.h>
#include <unistd.h>

#include <thread>

#include "fakes/refused_calls.h"
#include "transport/ipc/mapping_guard.h"

namespace hmc::ipc {
namespace {

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
