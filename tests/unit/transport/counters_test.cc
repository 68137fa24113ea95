#include "transport/counters.h"

#include <gtest/gtest.h>

#include <barrier>
#include <memory>
#include <thread>
#include <vector>

namespace hmc {
namespace {

TEST(TransportCounters, addsUpWhatAllThreadsCount) {
  TransportCounters counters;
  TransportCounters other;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 10000; ++i) {
        counters.count(1, 8);
        if (i % 100 == 0) other.count(2, 1);
        if (i % 1000 == 0) ++counters.stalls;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  counters.count(3, 5);
  ++counters.retries;
  const TransportTotals totals = counters.totals();
  EXPECT_EQ(totals.operations, 40003U);
  EXPECT_EQ(totals.bytes, 320005U);
  EXPECT_EQ(totals.stalls, 40U);
  EXPECT_EQ(totals.retries, 1U);
  EXPECT_EQ(other.totals().operations, 800U);
}

TEST(TransportCounters, newOnesDoNotGoOnWithTheCountsOfOldOnes) {
  for (int i = 0; i < 100; ++i) {
    auto counters = std::make_unique<TransportCounters>();
    counters->count(1, 1);
    ASSERT_EQ(counters->totals().operations, 1U);
  }
}

TEST(TransportCounters, keepWhatThreadsCountedThatAreGone) {
  TransportCounters counters;
  for (int i = 0; i < 10; ++i) std::thread([&] { counters.count(1, 2); }).join();
  EXPECT_EQ(counters.totals().operations, 10U);
  EXPECT_EQ(counters.totals().bytes, 20U);
}

TEST(TransportCounters, areExactWithMoreThreadsThanCells) {
  constexpr int kThreads = 300;
  TransportCounters counters;
  std::barrier allRun(kThreads);
  std::vector<std::jthread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      counters.count(1, 0);
      allRun.arrive_and_wait();
      for (int i = 0; i < 1000; ++i) counters.count(1, 8);
    });
  }
  threads.clear();
  EXPECT_EQ(counters.totals().operations, kThreads * 1001U);
  EXPECT_EQ(counters.totals().bytes, kThreads * 8000U);
}

// Counts when the thread's own cell has been given back.
struct CountsLast {
  ~CountsLast() { counters->count(1, 2); }
  TransportCounters* counters;
};

TEST(TransportCounters, areExactForThreadsThatEnd) {
  TransportCounters counters;
  std::vector<std::jthread> threads;
  for (int t = 0; t < 20; ++t) {
    threads.emplace_back([&] {
      thread_local CountsLast last{&counters};
      last.counters->count(1, 2);
    });
  }
  threads.clear();
  EXPECT_EQ(counters.totals().operations, 40U);
  EXPECT_EQ(counters.totals().bytes, 80U);
}

}  // namespace
}  // namespace hmc
