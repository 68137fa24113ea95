// Runs with HMC_MEMORY_PLUGIN naming a file that does not exist and a library that is no plugin.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "memory/backends.h"
#include "memory/device_of.h"

namespace hmc {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TEST(BrokenPlugin, isNamedByWhoAsksForAnAccelerator) {
  for (auto kind : {DeviceKind::cnrt, DeviceKind::acl, DeviceKind::musa}) {
    auto found = findBackend(kind);
    ASSERT_FALSE(found.ok());
    EXPECT_THAT(found.status().message(),
                AllOf(HasSubstr("/nonexistent/libvendor.so"), HasSubstr("libm.so.6"),
                      HasSubstr("hmcMemoryBackend"), HasSubstr("HMC_MEMORY_PLUGIN")));
  }
}

TEST(BrokenPlugin, doesNotDisturbTheHost) {
  EXPECT_TRUE(findBackend(DeviceKind::cpu).ok());
  int local = 0;
  EXPECT_EQ(*deviceOf(&local), Device{});
}

}  // namespace
}  // namespace hmc
