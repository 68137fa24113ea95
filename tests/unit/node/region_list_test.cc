// Peer::regions() and Peer::describe().
#include "node/region_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "unit/node/node_pair.h"

namespace hmc {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::string> namesOf(const std::vector<RegionInfo>& regions) {
  std::vector<std::string> names;
  for (const auto& region : regions) names.push_back(region.name);
  return names;
}

TEST(RegionList, tellsPeersWhatTheyCanOpen) {
  NodePair nodes;
  EXPECT_TRUE(must(nodes.toA.regions()).empty());
  std::vector<float> weights(6);
  auto shown = must(nodes.a.registerMemory("weights", weights.data(), 24, Device(), Access::read,
                                           nullptr, {"float32", {2, 3}}));
  auto pool = must(nodes.a.allocate("pool", 4096));
  auto unnamed = must(nodes.a.allocate("", 64));
  const auto all = must(nodes.toA.regions());
  ASSERT_THAT(namesOf(all), ElementsAre("pool", "weights"));
  EXPECT_EQ(all[1].size, 24U);
  EXPECT_EQ(all[1].access, Access::read);
  EXPECT_TRUE(all[1].device.isHost());
  EXPECT_EQ(all[1].type.dtype, "float32");
  EXPECT_THAT(all[1].type.shape, ElementsAre(2, 3));
  EXPECT_TRUE(all[0].type.dtype.empty());
  EXPECT_EQ(must(nodes.toA.describe("weights")).type.dtype, "float32");
  EXPECT_THAT(nodes.toA.describe("weight").status().message(), HasSubstr("it has \"pool\""));
  ASSERT_TRUE(pool.revoke().ok());
  EXPECT_THAT(namesOf(must(nodes.toA.regions())), ElementsAre("weights"));
}

TEST(RegionList, isAskedForInParts) {
  NodePair nodes;
  std::vector<char> memory(2 * kMostListed);
  std::vector<LocalRegion> regions;
  for (size_t i = 0; i < memory.size(); ++i) {
    regions.push_back(must(
        nodes.a.registerMemory("region " + std::to_string(10000 + i), &memory[i], 1, Device())));
  }
  const auto names = namesOf(must(nodes.toA.regions()));
  ASSERT_EQ(names.size(), memory.size());
  EXPECT_EQ(names.front(), "region 10000");
  EXPECT_EQ(names.back(), "region " + std::to_string(10000 + memory.size() - 1));
}

TEST(RegionList, refusesTypesThatAreNone) {
  NodePair nodes;
  char byte = 0;
  auto with = [&](const ArrayType& type) {
    return nodes.a.registerMemory("x", &byte, 1, Device(), Access::read, nullptr, type)
        .status()
        .message();
  };
  EXPECT_THAT(with({"two words", {}}), HasSubstr("dtype is \"two words\""));
  EXPECT_THAT(with({std::string(65, 'x'), {}}), HasSubstr("64 letters at most"));
  EXPECT_THAT(with({"int8", std::vector<uint64_t>(65, 1)}), HasSubstr("65 dimensions"));
}

TEST(RegionList, everyTruncationIsRefused) {
  const std::string bytes = encodeRegions({{"a", 8, Device(), Access::read, {"int8", {2, 4}}}});
  EXPECT_EQ(must(decodeRegions(bytes)).front().type.shape.back(), 4U);
  for (size_t size = 0; size < bytes.size(); ++size)
    EXPECT_FALSE(decodeRegions(bytes.substr(0, size)).ok()) << size;
  EXPECT_FALSE(decodeRegions(bytes + "x").ok());
  EXPECT_FALSE(decodeRegions(std::string("\xff\xff\xff\xff", 4)).ok());
  const auto question = RegionQuestion{RegionQuestion::Which::after, "a"}.encode();
  EXPECT_EQ(must(RegionQuestion::decode(question)).name, "a");
  EXPECT_FALSE(RegionQuestion::decode(question.substr(1)).ok());
}

}  // namespace
}  // namespace hmc
