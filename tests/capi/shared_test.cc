// Share Memory between processes: barriers, allgathers, and ranks that do not come.

#include <gtest/gtest.h>

#include "smem_ranks.h"
#include "store_view.h"

namespace hmc::test {
namespace {

class Shared : public testing::TestWithParam<size_t> {
 protected:
  void start(SmemRanks& ranks, int seconds = 60) {
    ranks.expectOk("shm " + url_ + " " + std::to_string(ranks.count()) + " {} 1 " +
                   std::to_string(seconds));
    create(ranks);
  }
  static void create(SmemRanks& ranks) {
    ranks.expectOk("object 0 " + std::to_string(ranks.count()) + " {} 2097152");
  }

  const std::string url_ = freeUrl();
};

TEST_P(Shared, barriersAndAllgathersOfAnySize) {
  SmemRanks ranks(GetParam());
  start(ranks);
  ranks.expectOk("barrier 0 100");
  for (const char* size : {"1", "7", "4096", "65536"})
    ranks.expectOk(std::string("allgather 0 ") + size + " 10");
  ranks.expectOk("context 0 65536");
  // Ends without a barrier: whoever is ahead must not take anything from the others.
  ranks.expectOk("drop 0");
  create(ranks);
  ranks.expectOk("allgather 0 100 3");
  ranks.expectOk("drop 0");
}

TEST_P(Shared, refusesWrongSizes) {
  SmemRanks ranks(GetParam());
  start(ranks);
  for (const char* line : {"allgather 0 65537", "context 0 0", "context 0 65537"}) {
    for (const Reply& reply : ranks.ask(line)) EXPECT_EQ(reply.code, "-2000") << line << reply;
  }
  ranks.expectOk("barrier 0");
}

INSTANTIATE_TEST_SUITE_P(Count, Shared, testing::Values(1, 2, 8));

using SharedFaults = Shared;

TEST_F(SharedFaults, aRankThatDoesNotComeIsATimeout) {
  SmemRanks ranks(2);
  start(ranks, 1);
  const Reply late = ranks[0].ask("barrier 0");
  EXPECT_EQ(late.code, "-2004") << late;
  // The call may be repeated: it is the same barrier.
  ranks.expectOk("barrier 0 5");
}

TEST_F(SharedFaults, aKilledRankEndsABarrierOfTheOthers) {
  SmemRanks ranks(3);
  start(ranks);
  ranks.expectOk("barrier 0 10");
  ranks.expectAKillToEndABarrier();
}

TEST_F(SharedFaults, aRankThatLeftEndsABarrierOfTheOthers) {
  SmemRanks ranks(2);
  start(ranks);
  ranks[0].say("barrier 0");
  EXPECT_TRUE(ranks[1].ask("drop 0").ok);
  const Reply reply = ranks[0].answer();
  EXPECT_EQ(reply.code, "-1") << reply;
}

// Ranks 0, 1 and 3 of four have met in a sub-group.
class SubGroupFaults : public Shared {
 protected:
  void SetUp() override {
    start(ranks_);
    for (int i : {0, 1, 2}) call(i);
    for (int i : {0, 1, 2}) expectOk(i);
  }
  // The i-th of them.
  SmemRank& member(int i) { return ranks_[i == 2 ? 3 : i]; }
  void call(int i) { member(i).say("group 0 some 3 " + std::to_string(i) + " 1"); }
  void expectOk(int i) {
    const Reply reply = member(i).answer();
    EXPECT_TRUE(reply.ok) << reply;
  }

  SmemRanks ranks_ = SmemRanks(4);
};

TEST_F(SubGroupFaults, aKilledRankEndsABarrierOfTheOthers) {
  for (int i : {0, 1}) call(i);
  member(2).kill();
  for (int i : {0, 1}) {
    const Reply reply = member(i).answer();
    EXPECT_EQ(reply.code, "-1") << reply;
    EXPECT_NE(reply.text.find("rank 3"), std::string::npos) << reply;
  }
}

TEST_F(SubGroupFaults, aKilledRankThatIsNotInItChangesNothing) {
  for (int i : {0, 1}) call(i);
  ranks_[2].kill();
  // It knows of that when this has failed.
  EXPECT_FALSE(member(2).ask("barrier 0").ok);
  call(2);
  for (int i : {0, 1, 2}) expectOk(i);
}

TEST_F(SubGroupFaults, aRankThatWasKilledBeforeItCameEndsABarrierOfTheOthers) {
  for (int rank : {0, 1, 2}) ranks_[rank].say("group 0 all 4 " + std::to_string(rank) + " 1");
  ranks_[3].kill();
  for (int rank : {0, 1, 2}) {
    const Reply reply = ranks_[rank].answer();
    EXPECT_EQ(reply.code, "-1") << reply;
  }
}

// Rank 2 lives and could be the third of the group, for all that the others know.
TEST_F(SubGroupFaults, aRankThatWasKilledBeforeItsFirstCallEndsABarrierOfTheOthers) {
  for (int rank : {0, 1}) ranks_[rank].say("group 0 new 3 " + std::to_string(rank) + " 1");
  ranks_[3].kill();
  for (int rank : {0, 1}) {
    const Reply reply = ranks_[rank].answer();
    EXPECT_EQ(reply.code, "-1") << reply;
    EXPECT_NE(reply.text.find("rank 3"), std::string::npos) << reply;
  }
}

TEST_F(SubGroupFaults, whoWasToldOfADeathGoesOnWithoutThatRank) {
  ranks_[3].kill();
  for (int rank : {0, 1, 2}) EXPECT_FALSE(ranks_[rank].ask("barrier 0").ok);
  for (int rank : {0, 1, 2}) ranks_[rank].say("group 0 rest 3 " + std::to_string(rank) + " 2");
  for (int rank : {0, 1, 2}) {
    const Reply reply = ranks_[rank].answer();
    EXPECT_TRUE(reply.ok) << reply;
  }
}

TEST_F(SubGroupFaults, aRankThatLeavesBeforeItsFirstCallEndsNothing) {
  for (int rank : {0, 1}) ranks_[rank].say("group 0 new 3 " + std::to_string(rank) + " 1");
  EXPECT_TRUE(ranks_[3].ask("drop 0").ok);
  // It knows of that when this has failed.
  EXPECT_FALSE(ranks_[2].ask("barrier 0").ok);
  EXPECT_TRUE(ranks_[2].ask("group 0 new 3 2 1").ok);
  for (int rank : {0, 1}) {
    const Reply reply = ranks_[rank].answer();
    EXPECT_TRUE(reply.ok) << reply;
  }
}

TEST_F(SharedFaults, allMustGiveTheSameSize) {
  SmemRanks ranks(2);
  start(ranks);
  ranks[0].say("allgather 0 10");
  ranks[1].say("allgather 0 20");
  for (int rank : {0, 1}) EXPECT_FALSE(ranks[rank].answer().ok);
}

TEST_F(SharedFaults, createWithoutTheOthersIsATimeoutAndLeavesNothing) {
  SmemRanks ranks(2);
  ranks[0].say("shm " + url_ + " 2 0");
  EXPECT_TRUE(ranks[1].ask("shm " + url_ + " 2 1 0 60 1").ok);
  EXPECT_TRUE(ranks[0].answer().ok);
  const Reply alone = ranks[1].ask("object 0 2 1 2097152");
  EXPECT_FALSE(alone.ok);
  EXPECT_NE(alone.text.find("did not come in time: 0"), std::string::npos) << alone;
  EXPECT_TRUE(ranks[1].ask("endshm").ok);
  EXPECT_TRUE(ranks[1].ask("shm " + url_ + " 2 1 0").ok);
  create(ranks);
  ranks.expectOk("barrier 0");
}

TEST_F(SharedFaults, aWrongNumberOfRanksIsRefusedAndLeavesNothing) {
  SmemRanks ranks(2);
  ranks.expectOk("shm " + url_ + " 2 {}");
  const Reply taken = ranks[0].ask("object 0 3 0 2097152");
  EXPECT_FALSE(taken.ok);
  EXPECT_NE(taken.text.find("rankSize 3"), std::string::npos) << taken;
  create(ranks);
  ranks.expectOk("barrier 0");
}

// A rank that is done makes the next object while another still has the last one.
TEST_F(SharedFaults, objectsOfOneIdFollowEachOtherWithoutABarrier) {
  SmemRanks ranks(3);
  start(ranks);
  StoreView store(url_);
  EXPECT_EQ(store.count("shm/0/", "/arrived"), 1);
  EXPECT_TRUE(ranks[0].ask("drop 0").ok);
  ranks[0].say("object 0 3 0 2097152");
  // Now it waits for those that have not yet destroyed theirs.
  EXPECT_TRUE(eventually([&] { return store.count("shm/0/", "/arrived") == 2; }));
  for (int rank : {1, 2}) {
    EXPECT_TRUE(ranks[rank].ask("drop 0").ok);
    ranks[rank].say("object 0 3 " + std::to_string(rank) + " 2097152");
  }
  for (int rank : {0, 1, 2}) {
    const Reply made = ranks[rank].answer();
    EXPECT_TRUE(made.ok) << made;
  }
  ranks.expectOk("allgather 0 100 3");
}

// 25: upstream's keys of barriers and allgathers stayed for ever. 4: so did those of sub-groups.
TEST_F(SharedFaults, nothingStaysInTheStore) {
  SmemRanks ranks(2);
  start(ranks);
  StoreView store(url_);
  for (int i = 0; i < 2; ++i) {
    ranks.expectOk("barrier 0 3");
    ranks.expectOk("group 0 both 2 {} 3");
    ranks.expectOk("number 0 10");
    ranks.expectOk("drop 0");
    EXPECT_TRUE(eventually([&] { return store.keys("shm/").empty(); }));
    create(ranks);
  }
}

// 4: upstream's sub-groups removed keys of the whole.
TEST_F(SharedFaults, subGroupsGoTheirOwnWays) {
  SmemRanks ranks(4);
  start(ranks);
  for (int i = 0; i < 2; ++i) {
    for (int rank : {0, 1}) ranks[rank].say("group 0 left 2 " + std::to_string(rank) + " 10");
    for (int rank : {2, 3}) ranks[rank].say("group 0 right 2 " + std::to_string(rank - 2) + " 3");
    for (int rank : {0, 1, 2, 3}) {
      const Reply reply = ranks[rank].answer();
      EXPECT_TRUE(reply.ok) << reply;
    }
    ranks.expectOk("barrier 0 3");
  }
  std::set<std::string> numbers;
  for (const Reply& reply : ranks.ask("number 0 4")) numbers.insert(reply.text);
  EXPECT_EQ(numbers, (std::set<std::string>{"0", "1", "2", "3"}));
  EXPECT_FALSE(ranks[0].ask("number 0 4").ok);
}

// 2: upstream emptied the store when the first of them ended.
TEST_F(SharedFaults, theEndOfARankLeavesTheStoreToTheOthers) {
  SmemRanks ranks(3);
  start(ranks);
  ranks.expectOk("barrier 0");
  EXPECT_EQ(ranks[2].finish(), 0);
  for (int rank : {0, 1}) ranks[rank].say("object 1 2 " + std::to_string(rank) + " 2097152");
  for (int rank : {0, 1}) EXPECT_TRUE(ranks[rank].answer().ok);
  for (int rank : {0, 1}) ranks[rank].say("barrier 1 5");
  for (int rank : {0, 1}) EXPECT_TRUE(ranks[rank].answer().ok);
}

TEST_F(SharedFaults, anExitReachesAllAndMayEndThem) {
  SmemRanks ranks(2);
  start(ranks);
  ranks.expectOk("onexit 0");
  ranks[0].say("tellexit 0 7");
  for (int rank : {1, 0}) {
    // It may get to say that it has told all, or end before.
    Reply reply = ranks[rank].answer();
    if (reply.ok) reply = ranks[rank].answer();
    EXPECT_EQ(reply.code, "GONE") << reply;
    EXPECT_EQ(ranks[rank].finish(), 7);
  }
}

TEST_F(SharedFaults, bigMemoryAndObjectsShareOneStore) {
  SmemRanks ranks(2);
  ranks.expectOk("bm " + url_ + " 2 {}");
  ranks.expectOk("shm " + url_ + " 2 {} 1");
  create(ranks);
  ranks.expectOk("create 0 0 2097152");
  ranks.expectOk("join 0");
  ranks.expectOk("barrier 0 5");
  // One of the two may end; the store stays for the other.
  ranks.expectOk("endbm");
  ranks.expectOk("barrier 0 5");
  ranks.expectOk("drop 0");
  create(ranks);
  ranks.expectOk("barrier 0 5");
}

}  // namespace
}  // namespace hmc::test
