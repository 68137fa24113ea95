#include "agent/range_map.h"

#include <gtest/gtest.h>

namespace hmc::agent {
namespace {

class RangeMapTest : public testing::Test {
 protected:
  // The value of the range that holds those bytes; -1 when none does.
  int around(uint64_t address, uint64_t size) {
    const auto found = ranges_.around(address, size);
    return found == ranges_.end() ? -1 : found->second.value;
  }
  RangeMap<int> ranges_;
};

TEST_F(RangeMapTest, findsFirstAndLastByteAndNothingBeyond) {
  EXPECT_TRUE(ranges_.add(100, 50, 1));
  EXPECT_EQ(around(99, 1), -1);
  EXPECT_EQ(around(100, 1), 1);
  EXPECT_EQ(around(100, 50), 1);
  EXPECT_EQ(around(149, 1), 1);
  EXPECT_EQ(around(149, 2), -1);
  EXPECT_EQ(around(150, 1), -1);
  EXPECT_EQ(around(100, UINT64_MAX), -1);
}

TEST_F(RangeMapTest, refusesASecondOneAtTheSameAddress) {
  EXPECT_TRUE(ranges_.add(100, 50, 1));
  EXPECT_FALSE(ranges_.add(100, 60, 2));
  EXPECT_EQ(around(100, 50), 1);
  EXPECT_EQ(around(100, 60), -1);
}

TEST_F(RangeMapTest, looksBehindSmallRangesForALargeOne) {
  ranges_.add(0, 1000, 1);
  for (uint64_t begin = 100; begin < 500; begin += 10) ranges_.add(begin, 5, 2);
  EXPECT_EQ(around(400, 5), 2);
  EXPECT_EQ(around(400, 6), 1);
  EXPECT_EQ(around(407, 1), 1);
  EXPECT_EQ(around(999, 1), 1);
  EXPECT_EQ(around(1000, 1), -1);
}

TEST_F(RangeMapTest, forgetsWhatIsErased) {
  ranges_.add(100, 50, 1);
  ranges_.add(120, 10, 2);
  ranges_.erase(ranges_.at(120));
  EXPECT_EQ(around(120, 1), 1);
  ranges_.erase(ranges_.at(100));
  EXPECT_EQ(around(120, 1), -1);
  EXPECT_TRUE(ranges_.empty());
}

TEST_F(RangeMapTest, holdsTheEndOfTheAddressSpace) {
  ranges_.add(UINT64_MAX - 9, 9, 1);
  EXPECT_EQ(around(UINT64_MAX - 1, 1), 1);
  EXPECT_EQ(around(UINT64_MAX, 1), -1);
}

}  // namespace
}  // namespace hmc::agent
