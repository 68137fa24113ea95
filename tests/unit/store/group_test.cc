#include "store/group.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <future>
#include <set>
#include <thread>

#include "fakes/must.h"
#include "store/memory_store.h"
#include "store/server.h"
#include "unit/store/waits.h"

namespace hmc::store {
namespace {

using test::must;

GroupOptions ranks(uint32_t capacity, std::optional<uint32_t> rank = std::nullopt) {
  GroupOptions options;
  options.name = "pool";
  options.capacity = capacity;
  options.rank = rank;
  options.ttl = kLong;
  return options;
}

// "+3" and "-3"
std::string next(Group& group) {
  const GroupEvent event = must(group.nextEvent(kLong));
  return (event.kind == GroupEvent::Kind::joined ? "+" : "-") + std::to_string(event.member.rank);
}

std::vector<uint32_t> ranksOf(const Group& group) {
  std::vector<uint32_t> all;
  for (const Member& member : group.members()) all.push_back(member.rank);
  return all;
}

bool readable(int fd, int timeoutMs) {
  pollfd poll{fd, POLLIN, 0};
  return ::poll(&poll, 1, timeoutMs) == 1;
}

class GroupTest : public testing::Test {
 protected:
  std::unique_ptr<Group> join(const GroupOptions& options) {
    return must(Group::join(memory->connect(), options, kLong));
  }

  const std::shared_ptr<MemoryStore> memory = MemoryStore::create();
};

TEST_F(GroupTest, EachGetsTheLowestRankThatIsFree) {
  auto a = join(ranks(4));
  auto b = join(ranks(4));
  auto c = join(ranks(4));
  EXPECT_EQ(a->self().rank, 0u);
  EXPECT_EQ(b->self().rank, 1u);
  EXPECT_EQ(c->self().rank, 2u);
  b.reset();
  auto d = join(ranks(4));
  EXPECT_EQ(d->self().rank, 1u);
  EXPECT_THAT(ranksOf(*d), testing::ElementsAre(0, 1, 2));
}

TEST_F(GroupTest, EventsTellWhoWasThereAndThenWhoComesAndGoes) {
  auto a = join(ranks(4, 3));
  auto b = join(ranks(4, 1));
  auto c = join(ranks(4));
  EXPECT_EQ(next(*c), "+1");
  EXPECT_EQ(next(*c), "+3");
  EXPECT_EQ(next(*a), "+1");
  EXPECT_EQ(next(*a), "+0");
  b.reset();
  EXPECT_EQ(next(*a), "-1");
  EXPECT_EQ(next(*c), "-1");
  EXPECT_EQ(c->nextEvent(kShort).status().code(), Code::deadlineExceeded);
}

TEST_F(GroupTest, MembersKnowEachOthersDescription) {
  GroupOptions options = ranks(2);
  options.description = std::string("tcp://x\0y", 9);
  auto a = join(options);
  auto b = join(ranks(2));
  EXPECT_EQ(must(b->nextEvent(kLong)).member.description, options.description);
  EXPECT_EQ(must(b->find(0, kLong)).incarnation, a->self().incarnation);
  EXPECT_EQ(a->self().incarnation.size(), 16u);
  EXPECT_NE(a->self().incarnation, b->self().incarnation);
}

TEST_F(GroupTest, ARankThatIsNotThereIsNotFoundByNumber) {
  auto a = join(ranks(8));
  const Status status = a->find(7, kLong).status();
  EXPECT_EQ(status.code(), Code::notFound);
  EXPECT_NE(status.message().find("7"), std::string::npos) << status.message();
}

TEST_F(GroupTest, ATakenRankAndAFullGroupAreErrorsThatNameTheHolder) {
  GroupOptions options = ranks(1);
  options.description = "the first one";
  auto a = join(options);
  Status status = Group::join(memory->connect(), ranks(2, 0), kShort).status();
  EXPECT_EQ(status.code(), Code::alreadyExists);
  EXPECT_NE(status.message().find("the first one"), std::string::npos) << status.message();
  status = Group::join(memory->connect(), ranks(1), kShort).status();
  EXPECT_EQ(status.code(), Code::exhausted);
  EXPECT_NE(status.message().find("the first one"), std::string::npos) << status.message();
  EXPECT_THAT(ranksOf(*a), testing::ElementsAre(0));
}

TEST_F(GroupTest, ARankWhoseHolderLivesIsWaitedForNoLongerThanItsLease) {
  GroupOptions options = ranks(2, 0);
  options.ttl = kShort;
  options.description = "1";
  auto a = join(options);
  options.describe = [](const std::string& description) { return "number " + description; };
  const Status status = Group::join(memory->connect(), options, kLong).status();
  EXPECT_EQ(status.code(), Code::alreadyExists);
  EXPECT_NE(status.message().find("number 1"), std::string::npos) << status.message();
}

TEST_F(GroupTest, WhoLeavesSaysSoAndWhoDiesDoesNot) {
  auto doomed = memory->connect();
  auto a = join(ranks(3));
  auto b = join(ranks(3));
  auto c = must(Group::join(doomed, ranks(3), kLong));
  EXPECT_EQ(next(*a), "+1");
  EXPECT_EQ(next(*a), "+2");
  EXPECT_TRUE(b->leave(kLong).ok());
  GroupEvent event = must(a->nextEvent(kLong));
  EXPECT_EQ(event.member.incarnation, b->self().incarnation);
  EXPECT_TRUE(event.said);
  memory->kill(doomed);
  event = must(a->nextEvent(kLong));
  EXPECT_EQ(event.member.incarnation, c->self().incarnation);
  EXPECT_FALSE(event.said);
  EXPECT_EQ(a->nextEvent(kShort).status().code(), Code::deadlineExceeded);
  EXPECT_EQ(join(ranks(3))->self().rank, 1u);
}

TEST_F(GroupTest, WhoLeavesIsAMemberForAsLongAsItNeedsTheStore) {
  auto a = join(ranks(2));
  auto b = join(ranks(2));
  EXPECT_EQ(next(*a), "+1");
  // The first half of leaving, as another process would see it.
  auto store = memory->connect();
  const std::string key = "groups/pool/rank/1";
  std::string value = must(store->get(key, kLong));
  value.front() = '-';
  ASSERT_TRUE(store->set(key, value, kLong).ok());
  EXPECT_EQ(a->nextEvent(Deadline::now()).status().code(), Code::deadlineExceeded);
  ASSERT_TRUE(store->remove(key, kLong).ok());
  EXPECT_TRUE(must(a->nextEvent(kLong)).said);
}

TEST_F(GroupTest, OptionsThatCannotBeAreRefused) {
  auto code = [&](const GroupOptions& options) {
    return Group::join(memory->connect(), options, kLong).status().code();
  };
  EXPECT_EQ(code(ranks(0)), Code::invalidArgument);
  EXPECT_EQ(code(ranks(2, 2)), Code::invalidArgument);
  GroupOptions options = ranks(2);
  options.name = "a/b";
  EXPECT_EQ(code(options), Code::invalidArgument);
  options.name = "";
  EXPECT_EQ(code(options), Code::invalidArgument);
}

TEST_F(GroupTest, TheRankOfADeadProcessIsWaitedForAndIsANewIncarnation) {
  auto doomed = memory->connect();
  auto a = must(Group::join(doomed, ranks(2, 0), kLong));
  auto b = join(ranks(2, 1));
  EXPECT_EQ(next(*b), "+0");
  const uint64_t asked = memory->requests() + 2;  // a lease and a watch
  auto c = std::async(std::launch::async, [&] { return join(ranks(2, 0)); });
  while (memory->requests() < asked) std::this_thread::yield();
  EXPECT_EQ(c.wait_for(kShort), std::future_status::timeout);
  EXPECT_EQ(memory->requests(), asked) << "it asks again and again";
  memory->kill(doomed);
  EXPECT_NE(c.get()->self().incarnation, a->self().incarnation);
  EXPECT_EQ(next(*b), "-0");
  EXPECT_EQ(next(*b), "+0");
}

TEST_F(GroupTest, OnlyTheIncarnationThatIsMeantIsBuried) {
  auto a = join(ranks(3));
  auto b = join(ranks(3));
  Member other = b->self();
  other.incarnation = a->self().incarnation;
  EXPECT_TRUE(a->reap(other, kLong).ok());
  EXPECT_THAT(ranksOf(*a), testing::ElementsAre(0, 1));
  EXPECT_TRUE(b->status().ok());
  EXPECT_TRUE(a->reap(b->self(), kLong).ok());
  EXPECT_THAT(ranksOf(*a), testing::ElementsAre(0));
  EXPECT_EQ(b->status().code(), Code::disconnected);
  EXPECT_TRUE(a->reap(b->self(), kLong).ok());
  auto c = join(ranks(3));
  EXPECT_EQ(c->self().rank, 1u);
  b.reset();
  EXPECT_TRUE(c->status().ok());
  EXPECT_THAT(ranksOf(*a), testing::ElementsAre(0, 1));
}

TEST_F(GroupTest, WhoHasLeftIsNoMember) {
  auto a = join(ranks(2));
  auto b = join(ranks(2));
  EXPECT_EQ(next(*b), "+0");
  EXPECT_TRUE(a->leave(kLong).ok());
  EXPECT_EQ(a->status().code(), Code::cancelled);
  EXPECT_EQ(next(*b), "-0");
  EXPECT_THAT(ranksOf(*b), testing::ElementsAre(1));
  EXPECT_TRUE(a->leave(kLong).ok());
}

TEST_F(GroupTest, LeavingWakesWhoWaitsForEvents) {
  auto a = join(ranks(2));
  std::vector<std::future<Code>> waiting;
  for (int i = 0; i < 3; ++i) {
    waiting.push_back(
        std::async(std::launch::async, [&] { return a->nextEvent(kLong).status().code(); }));
  }
  EXPECT_TRUE(a->leave(kLong).ok());
  for (auto& waiter : waiting) EXPECT_EQ(waiter.get(), Code::cancelled);
}

TEST_F(GroupTest, TheDescriptorIsReadableWhileThereAreEvents) {
  auto a = join(ranks(4));
  const int fd = must(a->eventFd());
  EXPECT_FALSE(readable(fd, 0));
  auto b = join(ranks(4));
  auto c = join(ranks(4));
  EXPECT_TRUE(readable(must(c->eventFd()), 0)) << "those that were there before";
  EXPECT_TRUE(readable(fd, 60000));
  EXPECT_EQ(next(*a), "+1");
  EXPECT_TRUE(readable(fd, 0));
  EXPECT_EQ(next(*a), "+2");
  EXPECT_FALSE(readable(fd, 0));
  EXPECT_EQ(must(a->eventFd()), fd);
}

TEST_F(GroupTest, WhatIsNoMemberIsLeftAlone) {
  auto store = memory->connect();
  for (const char* key : {"groups/pool/rank/x", "groups/pool/rank/01", "groups/pool/rank/",
                          "groups/pool/rank/99999999999", "groups/poolside/rank/1"}) {
    ASSERT_TRUE(store->set(key, std::string(20, 'x'), kLong).ok());
  }
  ASSERT_TRUE(store->set("groups/pool/rank/0", "short", kLong).ok());
  auto a = join(ranks(3));
  EXPECT_EQ(a->self().rank, 1u);
  EXPECT_THAT(ranksOf(*a), testing::ElementsAre(1));
  EXPECT_EQ(a->find(0, kLong).status().code(), Code::notFound);
}

TEST_F(GroupTest, AJoinCostsTheSameHoweverManyAreThere) {
  constexpr uint32_t kMembers = 300;
  std::vector<std::unique_ptr<Group>> groups;
  std::set<uint64_t> costs;
  for (uint32_t i = 0; i < kMembers; ++i) {
    const uint64_t before = memory->requests();
    groups.push_back(join(ranks(kMembers)));
    EXPECT_EQ(groups.back()->self().rank, i);
    costs.insert(memory->requests() - before);
  }
  EXPECT_THAT(costs, testing::ElementsAre(3)) << "a lease, a watch, a claim";
  EXPECT_EQ(ranksOf(*groups.front()).size(), kMembers);
  EXPECT_EQ(ranksOf(*groups.back()).size(), kMembers);
}

// Each join is told to each member once, and each member to who joins.
TEST_F(GroupTest, WhatAJoinTellsGrowsWithTheMembersAndNotFaster) {
  constexpr uint64_t kMembers = 100;
  std::vector<std::unique_ptr<Group>> groups;
  for (uint64_t present = 0; present < kMembers; ++present) {
    const uint64_t before = memory->delivered().changes;
    groups.push_back(join(ranks(kMembers)));
    for (const auto& group : groups) EXPECT_EQ(group->members().size(), present + 1);
    // To who joins: those that are there, the end of that list, and itself.
    const uint64_t told = present + (present + 2);
    EXPECT_EQ(memory->delivered().changes - before, told);
  }
}

TEST_F(GroupTest, ManyThatJoinAtOnceGetRanksOfTheirOwn) {
  constexpr uint32_t kMembers = 32;
  std::vector<std::future<std::unique_ptr<Group>>> joining;
  for (uint32_t i = 0; i < kMembers; ++i) {
    joining.push_back(std::async(std::launch::async, [&] { return join(ranks(kMembers)); }));
  }
  std::set<uint32_t> given;
  std::vector<std::unique_ptr<Group>> groups;
  for (auto& one : joining) {
    groups.push_back(one.get());
    given.insert(groups.back()->self().rank);
  }
  EXPECT_EQ(given.size(), kMembers);
  for (auto& group : groups) {
    EXPECT_EQ(ranksOf(*group).size(), kMembers);
    EXPECT_TRUE(group->status().ok());
  }
}

class ServedGroup : public testing::Test {
 protected:
  std::unique_ptr<Group> join(const GroupOptions& options) {
    return must(Group::join(must(openStore(address, {.grace = kLong}, kLong)), options, kLong));
  }

  std::unique_ptr<Server> server = must(Server::start("tcp://127.0.0.1:0", {}));
  const std::string address = server->address();
};

TEST_F(ServedGroup, AStoreThatIsRestartedChangesNothing) {
  auto a = join(ranks(4));
  auto b = join(ranks(4));
  EXPECT_EQ(next(*a), "+1");
  EXPECT_EQ(next(*b), "+0");
  server.reset();
  EXPECT_TRUE(a->status().ok());
  auto c = std::async(std::launch::async, [&] { return join(ranks(4, 3)); });
  server = must(Server::start(address, {}));
  auto joined = c.get();
  EXPECT_EQ(next(*a), "+3");
  EXPECT_EQ(next(*b), "+3");
  EXPECT_TRUE(a->status().ok());
  joined.reset();
  EXPECT_EQ(next(*a), "-3");
  EXPECT_THAT(ranksOf(*a), testing::ElementsAre(0, 1));
}

TEST_F(ServedGroup, WhoWasBuriedDoesNotComeBackWithTheStore) {
  auto a = join(ranks(4));
  auto b = join(ranks(4));
  ASSERT_TRUE(a->reap(b->self(), kLong).ok());
  EXPECT_EQ(b->nextEvent(kLong).ok(), true);  // rank 0, that was there before
  while (b->status().ok()) (void)b->nextEvent(kShort);
  server.reset();
  server = must(Server::start(address, {}));
  auto c = join(ranks(4, 1));
  EXPECT_EQ(must(a->find(1, kLong)).incarnation, c->self().incarnation);
  EXPECT_TRUE(c->status().ok());
}

}  // namespace
}  // namespace hmc::store
