#include "bench/timing.h"

#include <gtest/gtest.h>

namespace hmc::bench {
namespace {

TEST(Timing, percentilesAreOfTheSortedSamples) {
  Samples samples;
  for (int i = 1000; i >= 1; --i) samples.push_back(i);
  Percentiles found = percentiles(samples);
  EXPECT_NEAR(found.p50, 500, 1);
  EXPECT_NEAR(found.p99, 990, 1);
  EXPECT_NEAR(found.p999, 999, 1);
  EXPECT_EQ(percentiles({}).p50, 0);
  EXPECT_EQ(median({7}), 7);
}

TEST(Timing, aShortJobIsTimedManyAtATimeAlsoWhenTheFirstIsSlow) {
  int calls = 0;
  auto job = [&] {
    // As a first touch of memory would be.
    if (++calls == 1) {
      auto end = Clock::now() + std::chrono::milliseconds(5);
      while (Clock::now() < end) {
      }
    }
    return Status();
  };
  auto count = calibrate(job);
  ASSERT_TRUE(count.ok());
  EXPECT_GT(*count, 1U);
}

TEST(Timing, oursAndTheCeilingRunInTurns) {
  std::string order;
  auto note = [&](char who) {
    if (order.empty() || order.back() != who) order += who;
    return Status();
  };
  auto compared =
      compare([&] { return note('o'); }, [&] { return note('c'); }, std::chrono::milliseconds(1));
  ASSERT_TRUE(compared.ok());
  EXPECT_GT(order.size(), 10U) << order;
  EXPECT_GT(compared->ratio, 0);
  EXPECT_FALSE(compared->ours.empty());
}

TEST(Timing, withoutACeilingThereIsNoRatio) {
  auto measured = alone([] { return Status(); }, std::chrono::milliseconds(1));
  ASSERT_TRUE(measured.ok());
  EXPECT_FALSE(measured->ours.empty());
  EXPECT_TRUE(measured->ceiling.empty());
  EXPECT_TRUE(std::isnan(measured->ratio));
}

TEST(Timing, aFailureEndsTheMeasuring) {
  auto good = [] { return Status(); };
  auto bad = [] { return Status(Code::disconnected, "gone"); };
  EXPECT_EQ(compare(good, bad, std::chrono::milliseconds(1)).status().code(), Code::disconnected);
  EXPECT_EQ(alone(bad, std::chrono::milliseconds(1)).status().code(), Code::disconnected);
  EXPECT_EQ(compare(bad, good, std::chrono::milliseconds(1)).status().code(), Code::disconnected);
}

}  // namespace
}  // namespace hmc::bench
