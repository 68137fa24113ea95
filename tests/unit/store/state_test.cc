#include "store/state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fakes/must.h"

namespace hmc::store {
namespace {

using std::chrono::milliseconds;
using test::must;

const State::Time kStart{std::chrono::hours(1)};

std::vector<std::string> taken(State& state, uint64_t watch, size_t most = SIZE_MAX) {
  std::vector<std::string> all;
  for (const auto& event : must(state.take(watch, most))) {
    all.push_back(event.kind == Change::Kind::current   ? "."
                  : event.kind == Change::Kind::removed ? "-" + event.key
                                                        : event.key + "=" + *event.value);
  }
  return all;
}

TEST(State, thereAreOnlySoManyLeases) {
  State state(State::Limits{.leases = 2});
  ASSERT_TRUE(state.grant(1, milliseconds(100), kStart).ok());
  ASSERT_TRUE(state.grant(2, milliseconds(100), kStart).ok());
  EXPECT_EQ(state.grant(3, milliseconds(100), kStart).code(), Code::exhausted);
  EXPECT_TRUE(state.grant(2, milliseconds(200), kStart).ok());
  state.revoke(1);
  EXPECT_TRUE(state.grant(3, milliseconds(100), kStart).ok());
}

TEST(State, ALeaseEndsWhenNobodyKeepsItAlive) {
  State state;
  ASSERT_TRUE(state.grant(1, milliseconds(100), kStart).ok());
  ASSERT_TRUE(state.grant(2, milliseconds(300), kStart).ok());
  ASSERT_TRUE(state.set("a", "1", 1).ok());
  ASSERT_TRUE(state.set("b", "2", 2).ok());
  EXPECT_EQ(state.nextExpiry(), kStart + milliseconds(100));
  state.expire(kStart + milliseconds(99));
  EXPECT_TRUE(state.get("a"));
  EXPECT_TRUE(state.keepAlive(1, kStart + milliseconds(99)));
  EXPECT_EQ(state.nextExpiry(), kStart + milliseconds(199));
  state.expire(kStart + milliseconds(199));
  EXPECT_FALSE(state.get("a"));
  EXPECT_TRUE(state.get("b"));
  EXPECT_FALSE(state.keepAlive(1, kStart + milliseconds(200)));
  EXPECT_EQ(state.set("a", "1", 1).code(), Code::notFound);
}

TEST(State, AStoreThatWasStoppedGivesTheTimeBack) {
  State state;
  ASSERT_TRUE(state.grant(1, milliseconds(100), kStart).ok());
  ASSERT_TRUE(state.set("a", "1", 1).ok());
  state.postpone(std::chrono::seconds(5));
  state.expire(kStart + std::chrono::seconds(5));
  EXPECT_TRUE(state.get("a"));
  state.expire(kStart + milliseconds(5100));
  EXPECT_FALSE(state.get("a"));
}

TEST(State, AClaimTakesOnlyWhatIsFreeOrItsOwn) {
  State state;
  ASSERT_TRUE(state.grant(1, milliseconds(100), kStart).ok());
  ASSERT_TRUE(state.grant(2, milliseconds(100), kStart).ok());
  EXPECT_TRUE(must(state.claim("a", "1", 1)).done);
  EXPECT_TRUE(must(state.claim("a", "1", 1)).done);
  const Swap swap = must(state.claim("a", "2", 2));
  EXPECT_FALSE(swap.done);
  EXPECT_EQ(swap.found, "1");
  ASSERT_TRUE(state.set("b", "1").ok());
  EXPECT_FALSE(must(state.claim("b", "1", 1)).done);
  EXPECT_EQ(state.claim("c", "1", 3).status().code(), Code::notFound);
}

TEST(State, AFullStoreRefusesAndForgetsNothing) {
  State state({.bytes = 10});
  ASSERT_TRUE(state.set("k", "12345678").ok());
  EXPECT_EQ(state.set("l", "1").code(), Code::exhausted);
  EXPECT_EQ(state.append("k", "90").status().code(), Code::exhausted);
  EXPECT_EQ(*state.get("k"), "12345678");
  EXPECT_TRUE(state.set("k", "123456789").ok());
  state.remove("k");
  EXPECT_EQ(state.bytes(), 0u);
  EXPECT_TRUE(state.set("l", "123456789").ok());
}

TEST(State, AnAwaitWakesOnceAndNotAfterItWasForgotten) {
  State state;
  EXPECT_FALSE(state.await("a", 1));
  EXPECT_FALSE(state.await("a", 2));
  EXPECT_FALSE(state.await("b", 3));
  state.forget(2);
  ASSERT_TRUE(state.set("a", "x").ok());
  const auto woken = state.takeWoken().awaits;
  ASSERT_EQ(woken.size(), 1u);
  EXPECT_EQ(woken[0].first, 1u);
  EXPECT_EQ(*woken[0].second, "x");
  ASSERT_TRUE(state.set("a", "y").ok());
  EXPECT_TRUE(state.takeWoken().awaits.empty());
  EXPECT_EQ(*state.await("a", 4), "y");
}

TEST(State, AWatchIsWokenWhenItHasSomethingAgain) {
  State state;
  state.watch(1, "a");
  EXPECT_THAT(taken(state, 1), testing::ElementsAre("."));
  ASSERT_TRUE(state.set("b", "x").ok());
  EXPECT_TRUE(state.takeWoken().watches.empty());
  ASSERT_TRUE(state.set("a1", "x").ok());
  ASSERT_TRUE(state.set("a2", "x").ok());
  EXPECT_THAT(state.takeWoken().watches, testing::ElementsAre(1));
  EXPECT_THAT(taken(state, 1, 1), testing::ElementsAre("a1=x"));
  EXPECT_THAT(taken(state, 1), testing::ElementsAre("a2=x"));
  state.unwatch(1);
  ASSERT_TRUE(state.set("a3", "x").ok());
  EXPECT_TRUE(state.takeWoken().watches.empty());
}

TEST(State, AWatchHearsItsOwnPrefixAndNoOther) {
  State state;
  const std::vector<std::string> prefixes{"", "a", "a/", "a/b", "b", "a/bc"};
  for (size_t i = 0; i < prefixes.size(); ++i) {
    state.watch(i, prefixes[i]);
    taken(state, i);
  }
  ASSERT_TRUE(state.set("a/b", "x").ok());
  for (size_t i = 0; i < prefixes.size(); ++i) {
    EXPECT_EQ(taken(state, i).size(), i < 4 ? 1u : 0u) << prefixes[i];
  }
}

TEST(State, AWatchThatFallsBehindIsDropped) {
  State state({.backlog = 4});
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(state.set("k" + std::to_string(i), "x").ok());
  state.watch(1, "k");  // what is there does not count
  state.watch(2, "k");
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(state.set("k", "x").ok());
  EXPECT_EQ(taken(state, 2).size(), 15u);
  state.takeWoken();
  ASSERT_TRUE(state.set("k", "x").ok());
  EXPECT_THAT(state.takeWoken().watches, testing::UnorderedElementsAre(1, 2));
  EXPECT_EQ(state.take(1, SIZE_MAX).status().code(), Code::notFound);
  EXPECT_EQ(taken(state, 2).size(), 1u);
}

TEST(State, AWatchThatHoldsTooManyBytesIsDropped) {
  State state({.backlogBytes = 1000});
  state.watch(1, "");
  ASSERT_TRUE(state.set("k", std::string(998, 'x')).ok());
  EXPECT_TRUE(state.hasEvents(1));
  ASSERT_TRUE(state.set("k", "x").ok());
  EXPECT_EQ(state.take(1, SIZE_MAX).status().code(), Code::notFound);
}

TEST(State, KeysThatALeaseLostDoNotGoWithIt) {
  State state;
  ASSERT_TRUE(state.grant(1, milliseconds(100), kStart).ok());
  ASSERT_TRUE(state.set("a", "1", 1).ok());
  state.remove("a");
  ASSERT_TRUE(state.set("a", "2").ok());
  state.revoke(1);
  EXPECT_TRUE(state.get("a"));
  EXPECT_FALSE(state.nextExpiry());
}

TEST(State, WhatIsAddedOrAppendedStaysWithItsLease) {
  State state;
  ASSERT_TRUE(state.grant(1, milliseconds(100), kStart).ok());
  ASSERT_TRUE(state.set("n", "1", 1).ok());
  ASSERT_TRUE(state.set("s", "1", 1).ok());
  must(state.add("n", 1));
  must(state.append("s", "1"));
  state.revoke(1);
  EXPECT_TRUE(state.list("").empty());
}

}  // namespace
}  // namespace hmc::store
