#include "hmc/deadline.h"

#include <gtest/gtest.h>

namespace hmc {
namespace {

using std::chrono::nanoseconds;

template <class Time>
class Deadlines : public testing::Test {};
using Times = testing::Types<nanoseconds, std::chrono::microseconds, std::chrono::milliseconds,
                             std::chrono::seconds, std::chrono::hours,
                             std::chrono::duration<double>, std::chrono::duration<int32_t>>;
TYPED_TEST_SUITE(Deadlines, Times);

TYPED_TEST(Deadlines, theLongestTimeDoesNotExpireAtOnce) {
  const Deadline deadline(TypeParam::max());
  EXPECT_FALSE(deadline.passed());
  EXPECT_GT(deadline.left(), std::chrono::hours(1));
  EXPECT_GT(nanoseconds(Timeout(TypeParam::max())), std::chrono::hours(1));
}

TYPED_TEST(Deadlines, aNegativeTimeIsOver) {
  EXPECT_TRUE(Deadline(TypeParam::min()).passed() || TypeParam::min() > TypeParam::zero());
  EXPECT_TRUE(Deadline(-TypeParam::max()).passed());
  EXPECT_LT(Timeout(-TypeParam::max()).count(), 0);
}

TEST(Timeouts, ordinaryTimesAreWhatTheyAre) {
  EXPECT_EQ(nanoseconds(Timeout(std::chrono::milliseconds(1500))), nanoseconds(1500000000));
  EXPECT_EQ(nanoseconds(Timeout(std::chrono::duration<double>(0.25))), nanoseconds(250000000));
}

TEST(Timeouts, mayBeCountedWithoutASign) {
  EXPECT_EQ(nanoseconds(Timeout(std::chrono::seconds(20) * size_t{3})), std::chrono::minutes(1));
  EXPECT_EQ(nanoseconds(Timeout(nanoseconds(1) * size_t{7})), nanoseconds(7));
  using Unsigned = std::chrono::duration<uint64_t, std::nano>;
  EXPECT_GT(nanoseconds(Timeout(Unsigned::max())), std::chrono::hours(1));
}

}  // namespace
}  // namespace hmc
