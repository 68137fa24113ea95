#include "contract/store_contract.h"

#include <poll.h>

#include <set>
#include <thread>

#include "fakes/must.h"

namespace hmc::contract {

using store::Change;
using store::Entry;
using store::kLargestKey;
using store::kLargestValue;
using test::must;

std::string StoreContract::text(const Change& change) {
  switch (change.kind) {
    case Change::Kind::set:
      return change.entry.key + "=" + change.entry.value;
    case Change::Kind::removed:
      return "-" + change.entry.key;
    case Change::Kind::current:
      return ".";
  }
  return "?";
}

std::string StoreContract::text(const std::vector<Entry>& entries) {
  std::string all;
  for (const Entry& entry : entries) all += entry.key + "=" + entry.value + " ";
  return all;
}

std::vector<std::string> StoreContract::changesUntil(
    store::Watch& watch, const std::function<bool(const Change&)>& last) {
  std::vector<std::string> all;
  for (;;) {
    for (const Change& change : must(watch.next(kLong))) {
      all.push_back(text(change));
      if (last(change)) return all;
    }
  }
}

namespace {

bool isCurrent(const Change& change) {
  return change.kind == Change::Kind::current;
}

std::function<bool(const Change&)> isFor(const std::string& key) {
  return [key](const Change& change) { return change.entry.key == key; };
}

bool readable(int fd) {
  pollfd poll{fd, POLLIN, 0};
  return ::poll(&poll, 1, 0) == 1;
}

}  // namespace

TEST_P(StoreContract, WhatOneClientSetsAnotherGets) {
  const std::string bytes("\0\xff zero and more\0", 16);
  ASSERT_TRUE(store->set("key", bytes, kLong).ok());
  EXPECT_EQ(must(other->get("key", kLong)), bytes);
  ASSERT_TRUE(other->set("key", "", kLong).ok());
  EXPECT_EQ(must(store->get("key", kLong)), "");
}

TEST_P(StoreContract, AKeyThatIsNotThereIsNotFoundByName) {
  const Status status = store->get("nowhere", kLong).status();
  EXPECT_EQ(status.code(), Code::notFound);
  EXPECT_NE(status.message().find("nowhere"), std::string::npos) << status.message();
}

TEST_P(StoreContract, RemovedKeysAreGone) {
  for (const char* key : {"a/1", "a/2", "a", "b"}) ASSERT_TRUE(store->set(key, "x", kLong).ok());
  EXPECT_TRUE(store->remove("b", kLong).ok());
  EXPECT_TRUE(store->remove("b", kLong).ok());
  EXPECT_TRUE(store->removeAll("a/", kLong).ok());
  EXPECT_EQ(text(must(other->list("", kLong))), "a=x ");
}

TEST_P(StoreContract, AListHasAllThatBeginWithThePrefixInOrder) {
  for (const char* key : {"p/b", "p/a", "p", "q", "p/a/c", "o"}) {
    ASSERT_TRUE(store->set(key, key, kLong).ok());
  }
  EXPECT_EQ(text(must(other->list("p/", kLong))), "p/a=p/a p/a/c=p/a/c p/b=p/b ");
  EXPECT_TRUE(must(other->list("r", kLong)).empty());
}

TEST_P(StoreContract, AListMayBeLargerThanOneMessage) {
  const std::string value(std::min(size_t{3} << 20, GetParam().large), 'v');
  for (char key = 'a'; key < 'i'; ++key) {
    ASSERT_TRUE(store->set(std::string("big/") + key, value + key, kLong).ok());
  }
  const auto entries = must(other->list("big/", kLong));
  ASSERT_EQ(entries.size(), 8u);
  for (size_t i = 0; i < entries.size(); ++i) {
    EXPECT_EQ(entries[i].value.size(), value.size() + 1);
    EXPECT_EQ(entries[i].value.back(), static_cast<char>('a' + i));
  }
}

TEST_P(StoreContract, AwaitReturnsAtOnceOrWhenTheKeyIsSet) {
  ASSERT_TRUE(store->set("there", "now", kLong).ok());
  EXPECT_EQ(must(other->await("there", kLong)), "now");
  std::string later;
  std::thread waiter([&] { later = must(other->await("later", kLong)); });
  ASSERT_TRUE(store->set("later on", "no", kLong).ok());
  ASSERT_TRUE(store->set("later", "yes", kLong).ok());
  waiter.join();
  EXPECT_EQ(later, "yes");
}

TEST_P(StoreContract, AnAwaitEndsAtItsDeadlineAndNamesTheKey) {
  const Status status = store->await("never", std::chrono::milliseconds(20)).status();
  EXPECT_EQ(status.code(), Code::deadlineExceeded);
  EXPECT_NE(status.message().find("never"), std::string::npos) << status.message();
  ASSERT_TRUE(store->set("never", "after all", kLong).ok());
  EXPECT_EQ(must(store->await("never", kLong)), "after all");
}

TEST_P(StoreContract, awaitCanBeGivenUp) {
  std::stop_source giveUp;
  Status status;
  std::thread waiter([&] { status = store->await("never", kLong, giveUp.get_token()).status(); });
  giveUp.request_stop();
  waiter.join();
  EXPECT_EQ(status.code(), Code::cancelled) << status.toString();
  // The client goes on.
  ASSERT_TRUE(other->set("never", "after all", kLong).ok());
  EXPECT_EQ(must(store->await("never", kLong)), "after all");
}

TEST_P(StoreContract, CompareAndSetOnlyChangesWhatIsExpected) {
  auto swap = must(store->compareAndSet("lock", std::nullopt, "mine", kLong));
  EXPECT_TRUE(swap.done);
  EXPECT_FALSE(swap.found.has_value());
  swap = must(other->compareAndSet("lock", std::nullopt, "theirs", kLong));
  EXPECT_FALSE(swap.done);
  EXPECT_EQ(swap.found, "mine");
  swap = must(other->compareAndSet("lock", "wrong", "theirs", kLong));
  EXPECT_FALSE(swap.done);
  swap = must(other->compareAndSet("lock", "mine", "theirs", kLong));
  EXPECT_TRUE(swap.done);
  EXPECT_EQ(must(store->get("lock", kLong)), "theirs");
  swap = must(store->compareAndSet("lock", "theirs", std::nullopt, kLong));
  EXPECT_TRUE(swap.done);
  EXPECT_EQ(store->get("lock", kLong).status().code(), Code::notFound);
  swap = must(store->compareAndSet("lock", "theirs", "x", kLong));
  EXPECT_FALSE(swap.done);
  EXPECT_FALSE(swap.found.has_value());
}

TEST_P(StoreContract, AnEmptyValueIsNotAMissingOne) {
  ASSERT_TRUE(store->set("empty", "", kLong).ok());
  EXPECT_FALSE(must(store->compareAndSet("empty", std::nullopt, "x", kLong)).done);
  EXPECT_TRUE(must(store->compareAndSet("empty", "", "x", kLong)).done);
}

TEST_P(StoreContract, OneOfManyWinsACompareAndSet) {
  std::atomic<int> winners{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&, i] {
      auto& mine = i % 2 == 0 ? store : other;
      const auto swap = must(mine->compareAndSet("race", std::nullopt, std::to_string(i), kLong));
      if (swap.done) ++winners;
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(winners, 1);
}

TEST_P(StoreContract, AddCountsEveryCallOnce) {
  EXPECT_EQ(must(store->add("count", 5, kLong)), 5);
  EXPECT_EQ(must(other->add("count", -7, kLong)), -2);
  EXPECT_EQ(must(store->get("count", kLong)), "-2");
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      for (int n = 0; n < 50; ++n) must((i % 2 == 0 ? store : other)->add("count", 1, kLong));
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(must(store->add("count", 0, kLong)), 198);
}

TEST_P(StoreContract, AddRefusesWhatIsNoNumberAndWhatPasses64Bits) {
  ASSERT_TRUE(store->set("word", "12a", kLong).ok());
  EXPECT_EQ(store->add("word", 1, kLong).status().code(), Code::invalidArgument);
  EXPECT_EQ(must(store->get("word", kLong)), "12a");
  ASSERT_EQ(must(store->add("big", INT64_MAX, kLong)), INT64_MAX);
  EXPECT_EQ(store->add("big", 1, kLong).status().code(), Code::outOfRange);
  EXPECT_EQ(must(store->add("big", -1, kLong)), INT64_MAX - 1);
}

TEST_P(StoreContract, AppendAnswersTheNewSize) {
  EXPECT_EQ(must(store->append("log", "ab", kLong)), 2u);
  EXPECT_EQ(must(other->append("log", "", kLong)), 2u);
  EXPECT_EQ(must(other->append("log", "cde", kLong)), 5u);
  EXPECT_EQ(must(store->get("log", kLong)), "abcde");
}

TEST_P(StoreContract, LimitsAreErrorsAndTheLargestFits) {
  const std::string key(kLargestKey, 'k');
  const std::string value(kLargestValue, 'v');
  EXPECT_TRUE(store->set(key, value, kLong).ok());
  EXPECT_EQ(must(other->get(key, kLong)).size(), value.size());
  EXPECT_EQ(store->set(key + "k", "v", kLong).code(), Code::invalidArgument);
  EXPECT_EQ(store->set("k", value + "v", kLong).code(), Code::invalidArgument);
  EXPECT_EQ(store->append(key, "v", kLong).status().code(), Code::invalidArgument);
  EXPECT_EQ(store->set("", "v", kLong).code(), Code::invalidArgument);
  EXPECT_EQ(store->lease(std::chrono::milliseconds(0), kLong).status().code(),
            Code::invalidArgument);
  EXPECT_TRUE(store->get(key, kLong).ok());
}

TEST_P(StoreContract, AWatchTellsWhatIsThereAndThenWhatChanges) {
  ASSERT_TRUE(store->set("w/a", "1", kLong).ok());
  ASSERT_TRUE(store->set("w/b", "2", kLong).ok());
  ASSERT_TRUE(store->set("v", "no", kLong).ok());
  auto watch = must(other->watch("w/"));
  EXPECT_THAT(changesUntil(*watch, isCurrent), testing::ElementsAre("w/a=1", "w/b=2", "."));
  ASSERT_TRUE(store->set("w/a", "3", kLong).ok());
  ASSERT_TRUE(store->set("w/a", "3", kLong).ok());
  ASSERT_TRUE(store->remove("w/b", kLong).ok());
  ASSERT_TRUE(store->set("x", "no", kLong).ok());
  must(store->append("w/a", "4", kLong));
  must(store->add("w/n", 1, kLong));
  must(store->compareAndSet("w/end", std::nullopt, "", kLong));
  EXPECT_THAT(changesUntil(*watch, isFor("w/end")),
              testing::ElementsAre("w/a=3", "w/a=3", "-w/b", "w/a=34", "w/n=1", "w/end="));
}

TEST_P(StoreContract, AWatchOfNothingIsCurrentAtOnceAndEndsAtItsDeadline) {
  auto watch = must(store->watch("w/"));
  EXPECT_THAT(changesUntil(*watch, isCurrent), testing::ElementsAre("."));
  EXPECT_EQ(watch->next(std::chrono::milliseconds(20)).status().code(), Code::deadlineExceeded);
}

TEST_P(StoreContract, AWatchMayBeLargerThanOneMessage) {
  const std::string value(std::min(size_t{5} << 20, GetParam().large), 'v');
  for (char key = 'a'; key < 'f'; ++key) {
    ASSERT_TRUE(store->set(std::string("w/") + key, value, kLong).ok());
  }
  auto watch = must(other->watch("w/"));
  EXPECT_EQ(changesUntil(*watch, isCurrent).size(), 6u);
  for (char key = 'a'; key < 'f'; ++key) {
    ASSERT_TRUE(store->set(std::string("w/") + key, value, kLong).ok());
  }
  ASSERT_TRUE(store->set("w/end", "", kLong).ok());
  EXPECT_EQ(changesUntil(*watch, isFor("w/end")).size(), 6u);
}

TEST_P(StoreContract, AWatchsDescriptorIsReadableWhileThereAreChanges) {
  auto watch = must(other->watch("w/"));
  changesUntil(*watch, isCurrent);
  EXPECT_FALSE(readable(watch->fd()));
  ASSERT_TRUE(store->set("w/a", "1", kLong).ok());
  pollfd poll{watch->fd(), POLLIN, 0};
  ASSERT_EQ(::poll(&poll, 1, 60000), 1);
  EXPECT_TRUE(readable(watch->fd()));
  EXPECT_EQ(must(watch->next(Deadline::now())).size(), 1u);
  EXPECT_FALSE(readable(watch->fd()));
}

TEST_P(StoreContract, ManyWatchesHearTheSameInTheSameOrder) {
  std::vector<std::unique_ptr<store::Watch>> watches;
  for (int i = 0; i < 10; ++i) {
    watches.push_back(must((i % 2 == 0 ? store : other)->watch(i % 3 == 0 ? "" : "w/")));
    changesUntil(*watches.back(), isCurrent);
  }
  std::vector<std::string> expected;
  for (int i = 0; i < 100; ++i) {
    const std::string key = "w/" + std::to_string(i);
    ASSERT_TRUE((i % 2 == 0 ? store : other)->set(key, "x", kLong).ok());
    expected.push_back(key + "=x");
  }
  for (auto& watch : watches) EXPECT_EQ(changesUntil(*watch, isFor("w/99")), expected);
}

TEST_P(StoreContract, TheKeysOfALeaseGoWithIt) {
  auto watch = must(other->watch(""));
  // It may begin a little later than watch() returns.
  EXPECT_THAT(changesUntil(*watch, isCurrent), testing::ElementsAre("."));
  auto lease = must(store->lease(kTtl, kLong));
  ASSERT_TRUE(store->set("held/a", "1", kLong, lease).ok());
  must(store->compareAndSet("held/b", std::nullopt, "2", kLong, lease));
  ASSERT_TRUE(store->set("free", "3", kLong).ok());
  EXPECT_TRUE(lease->status().ok());
  EXPECT_EQ(must(other->list("held", kLong)).size(), 2u);
  lease.reset();
  const auto changes = changesUntil(*watch, [](const Change& change) {
    return change.kind == Change::Kind::removed && change.entry.key == "held/b";
  });
  EXPECT_THAT(changes,
              testing::ElementsAre("held/a=1", "held/b=2", "free=3", "-held/a", "-held/b"));
  EXPECT_EQ(text(must(other->list("", kLong))), "free=3 ");
}

TEST_P(StoreContract, RevokeRemovesTheKeysBeforeItReturns) {
  auto lease = must(store->lease(kTtl, kLong));
  ASSERT_TRUE(store->set("held", "1", kLong, lease).ok());
  EXPECT_TRUE(lease->revoke(kLong).ok());
  EXPECT_EQ(other->get("held", kLong).status().code(), Code::notFound);
  EXPECT_FALSE(lease->status().ok());
  EXPECT_FALSE(store->set("held", "1", kLong, lease).ok());
  EXPECT_TRUE(lease->revoke(kLong).ok());
}

TEST_P(StoreContract, AKeyBelongsToTheLeaseThatSetItLast) {
  auto first = must(store->lease(kTtl, kLong));
  auto second = must(store->lease(kTtl, kLong));
  for (const char* key : {"a", "b", "c"}) ASSERT_TRUE(store->set(key, "1", kLong, first).ok());
  ASSERT_TRUE(store->set("a", "2", kLong, second).ok());
  ASSERT_TRUE(store->set("b", "2", kLong).ok());
  ASSERT_TRUE(first->revoke(kLong).ok());
  EXPECT_EQ(text(must(store->list("", kLong))), "a=2 b=2 ");
  ASSERT_TRUE(second->revoke(kLong).ok());
  EXPECT_EQ(text(must(store->list("", kLong))), "b=2 ");
}

TEST_P(StoreContract, ALeaseOfAnotherStoreIsRefused) {
  auto lease = must(other->lease(kTtl, kLong));
  EXPECT_EQ(store->set("key", "1", kLong, lease).code(), Code::invalidArgument);
  EXPECT_EQ(store->get("key", kLong).status().code(), Code::notFound);
}

TEST_P(StoreContract, LeasesAndWatchesOutliveTheHandleOfTheirStore) {
  auto lease = must(store->lease(kTtl, kLong));
  ASSERT_TRUE(store->set("held", "1", kLong, lease).ok());
  auto watch = must(store->watch("held"));
  store.reset();
  EXPECT_TRUE(lease->status().ok());
  EXPECT_THAT(changesUntil(*watch, isCurrent), testing::ElementsAre("held=1", "."));
  EXPECT_EQ(must(other->get("held", kLong)), "1");
}

INSTANTIATE_TEST_SUITE_P(All, StoreContract, testing::ValuesIn(storeCandidates()),
                         [](const auto& about) { return about.param.name; });

}  // namespace hmc::contract
