#include <gtest/gtest.h>

#include "agent/record.h"
#include "fakes/must.h"

namespace hmc::agent {
namespace {

TEST(AgentRecord, comesBackAsItWas) {
  const auto record = test::must(Record::decode(Record{"tcp://10.0.0.1:7", "abc"}.encode()));
  EXPECT_EQ(record.address, "tcp://10.0.0.1:7");
  EXPECT_EQ(record.incarnation, "abc");
  const auto memory = test::must(decodeMemory(encode({{1, 2, 3}, {4, 5, 6}})));
  ASSERT_EQ(memory.size(), 2);
  EXPECT_EQ(memory[1].begin, 4);
  EXPECT_EQ(memory[1].size, 5);
  EXPECT_EQ(memory[1].number, 6);
}

TEST(AgentRecord, refusesBytesThatAreNone) {
  const std::string good = Record{"address", "incarnation"}.encode();
  for (size_t length = 0; length < good.size(); ++length)
    EXPECT_FALSE(Record::decode(good.substr(0, length)).ok()) << length;
  EXPECT_FALSE(Record::decode(good + "x").ok());
  EXPECT_FALSE(decodeMemory("seven b").ok());
  EXPECT_FALSE(decodeMemory(encode({{UINT64_MAX - 4, 5, 1}, {0, 1, 2}}).substr(1)).ok());
  EXPECT_FALSE(decodeMemory(encode({{UINT64_MAX - 4, 6, 1}})).ok());
}

TEST(AgentRecord, idsArePartOfKeys) {
  EXPECT_TRUE(checkId("10.0.0.1:15000").ok());
  EXPECT_TRUE(checkId("[::1]:15000").ok());
  EXPECT_TRUE(checkId(std::string(255, 'x')).ok());
  for (const char* bad : {"", "a/b", "a b", "a\n"}) EXPECT_FALSE(checkId(bad).ok()) << bad;
  EXPECT_FALSE(checkId(std::string(256, 'x')).ok());
}

}  // namespace
}  // namespace hmc::agent
