#include "transport/select.h"

#include <gtest/gtest.h>

namespace hmc {
namespace {

constexpr size_t kKiB = 1024;

PathTime typical(double latencyNs, double bytesPerNs) {
  Transport::Path path{"", latencyNs, bytesPerNs};
  return [path](uint64_t size) { return predict(path, MemoryEnds{}, size); };
}

TEST(Select, oneThatIsQuickerEverywhereIsAlone) {
  const std::vector<PathTime> paths{typical(20, 10), typical(15000, 2.5)};
  EXPECT_EQ(worthHaving(paths), std::vector<size_t>{0});
  EXPECT_EQ(worthHaving({paths[1], paths[0]}), std::vector<size_t>{1});
}

TEST(Select, aPathThatIsLikedBetterStaysWhenAnotherIsOnlyALittleQuicker) {
  EXPECT_EQ(worthHaving({typical(1100, 1), typical(1000, 1.1)}), std::vector<size_t>{0});
  EXPECT_EQ(worthHaving({typical(1300, 1), typical(1000, 1)}), (std::vector<size_t>{1}))
      << "from there on the first one is never 1.2 times as quick";
}

TEST(Select, latencyAndBandwidthShareTheSizes) {
  // Equal where 1000 + n / 1 == 5000 + n / 10.
  const std::vector<PathTime> paths{typical(1000, 1), typical(5000, 10)};
  EXPECT_EQ(worthHaving(paths), (std::vector<size_t>{0, 1}));
  const PathTable table = quickest(paths);
  EXPECT_EQ(table.at(1), 0U);
  EXPECT_EQ(table.at(4 * kKiB), 0U);
  EXPECT_EQ(table.at(8 * kKiB), 1U);
  EXPECT_EQ(table.at(UINT64_MAX), 1U);
  EXPECT_EQ(table.ranges().size(), 2U);
}

TEST(Select, threePathsCanHaveThreeRanges) {
  const PathTable table = quickest({typical(1e6, 100), typical(100, 0.1), typical(10000, 5)});
  EXPECT_EQ(table.at(8), 1U);
  EXPECT_EQ(table.at(16 * kKiB), 2U);
  EXPECT_EQ(table.at(size_t{1} << 30), 0U);
}

TEST(Select, nothingAndOneNeedNoChoice) {
  EXPECT_TRUE(worthHaving({}).empty());
  EXPECT_EQ(worthHaving({typical(1, 1)}), std::vector<size_t>{0});
  EXPECT_EQ(quickest({typical(1, 1)}).at(UINT64_MAX), 0U);
  EXPECT_EQ(PathTable().at(0), 0U);
}

TEST(Select, memoryThatIsNotTheHostsAndStagingCostTime) {
  const Transport::Path path{"", 1000, 1};
  MemoryEnds ends;
  double last = predict(path, ends, 4096);
  EXPECT_DOUBLE_EQ(last, 1000 + 4096);
  ends.local = DeviceKind::cuda;
  for (bool* more : {&ends.stagedHere, &ends.stagedThere}) {
    *more = true;
    EXPECT_GT(predict(path, ends, 4096), last);
    last = predict(path, ends, 4096);
  }
}

}  // namespace
}  // namespace hmc
