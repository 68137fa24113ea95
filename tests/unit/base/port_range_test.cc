#include "base/port_range.h"

#include <gtest/gtest.h>

namespace hmc {
namespace {

TEST(PortRange, isTwoPortsOneOrNone) {
  const auto two = portRangeFrom("20000-20015");
  ASSERT_TRUE(two.ok());
  EXPECT_EQ(two->first, 20000);
  EXPECT_EQ(two->last, 20015);
  const auto one = portRangeFrom("65535");
  ASSERT_TRUE(one.ok());
  EXPECT_EQ(one->first, 65535);
  EXPECT_EQ(one->last, 65535);
  const auto none = portRangeFrom("");
  ASSERT_TRUE(none.ok());
  EXPECT_EQ(none->last, 0);
}

TEST(PortRange, anythingElseIsNamed) {
  for (const char* wrong :
       {"0", "0-5", "5-4", "65536", "1-65536", "1-", "-1", "1-2-3", " 1", "http"}) {
    const Status status = portRangeFrom(wrong).status();
    EXPECT_EQ(status.code(), Code::invalidArgument) << wrong;
    EXPECT_NE(status.message().find(std::string("\"") + wrong + "\""), std::string::npos);
  }
}

}  // namespace
}  // namespace hmc
