// Runs as the machine is, with libraries in LD_LIBRARY_PATH that have the vendors' names and no
// functions, and with such that find no device.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "memory/backends.h"

namespace hmc {
namespace {

using testing::AllOf;
using testing::HasSubstr;

struct Missing {
  DeviceKind kind;
  const char* library;
  const char* symbol;  // the first that is missed
};

constexpr Missing kMissing[] = {
    {DeviceKind::hip, "libamdhip64.so.6", "hipRuntimeGetVersion"},
    {DeviceKind::musa, "libmusart.so", "musaRuntimeGetVersion"},
    {DeviceKind::acl, "libascendcl.so", "aclInit"},
    {DeviceKind::cnrt, "libcnrt.so", "cnrtGetLibVersion"},
};

TEST(MissingVendors, areNamedWithTheSymbolThatIsMissing) {
  if (!std::getenv("HMC_TEST_EMPTY_LIBRARIES")) GTEST_SKIP() << "there are no libraries";
  for (const Missing& one : kMissing) {
    auto found = findBackend(one.kind);
    ASSERT_FALSE(found.ok());
    EXPECT_EQ(found.status().code(), Code::unsupported);
    EXPECT_THAT(found.status().message(),
                AllOf(HasSubstr(one.library), HasSubstr(one.symbol), HasSubstr("newer version")));
  }
}

TEST(MissingVendors, areNamedWithTheFix) {
  if (std::getenv("HMC_TEST_EMPTY_LIBRARIES")) GTEST_SKIP() << "there are empty libraries";
  for (const Missing& one : kMissing) {
    auto found = findBackend(one.kind);
    if (found.ok()) continue;  // this machine has it
    const std::string& why = found.status().message();
    EXPECT_THAT(why,
                AllOf(HasSubstr("install"), HasSubstr("docker run"), HasSubstr("LD_LIBRARY_PATH")));
    // A library that is there is not called missing.
    const bool installed = why.find("there is no ") == std::string::npos;
    EXPECT_THAT(why, HasSubstr(installed ? "device" : one.library));
  }
}

TEST(MissingVendors, withoutADeviceSaySo) {
  const char* count = std::getenv("HMC_FAKE_DEVICES");
  if (!count || std::string(count) != "0") GTEST_SKIP() << "not on the fakes without devices";
  for (const Missing& one : kMissing) {
    auto found = findBackend(one.kind);
    ASSERT_FALSE(found.ok()) << deviceKindName(one.kind);
    EXPECT_EQ(found.status().code(), Code::unsupported);
    EXPECT_THAT(found.status().message(), AllOf(HasSubstr("device"), HasSubstr("docker run")));
    EXPECT_THAT(found.status().message(), testing::Not(HasSubstr("there is no ")));
  }
}

}  // namespace
}  // namespace hmc
