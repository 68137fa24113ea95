#include "node/descriptions.h"

#include <gtest/gtest.h>

namespace hmc {
namespace {

TEST(Attributes, surviveTheWire) {
  Attributes sent;
  sent.transports = {{"ipc", "here"}, {"tcp", "everywhere"}};
  sent.rank = 7;
  sent.listeners = {{"UCX", 2025}, {"control", 5001}};
  auto got = Attributes::decode(sent.encode());
  ASSERT_TRUE(got.ok());
  EXPECT_EQ(got->transports.size(), 2U);
  EXPECT_EQ(got->transports[1].domain, "everywhere");
  EXPECT_EQ(got->rank, 7U);
  EXPECT_EQ(got->listeners[0].label, "UCX");
  EXPECT_EQ(got->listeners[1].port, 5001);
}

TEST(Attributes, aRankIsOptional) {
  EXPECT_FALSE(Attributes::decode(Attributes().encode())->rank.has_value());
}

TEST(Attributes, everyTruncationIsRefused) {
  Attributes sent;
  sent.transports = {{"ipc", "here"}};
  sent.listeners = {{"UCX", 2025}};
  std::string bytes = sent.encode();
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_FALSE(Attributes::decode(bytes.substr(0, size)).ok()) << size;
  }
  EXPECT_FALSE(Attributes::decode(bytes + "x").ok());
}

TEST(Attributes, aHugeCountIsRefusedWithoutMakingRoomForIt) {
  EXPECT_FALSE(Attributes::decode(std::string("\xff\xff\xff\xff", 4)).ok());
}

}  // namespace
}  // namespace hmc
