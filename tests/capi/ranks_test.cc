// Big Memory between processes: who comes, goes and dies.

#include <gtest/gtest.h>

#include <smem_bm.h>

#include <cstdlib>

#include "smem_ranks.h"
#include "store_view.h"

namespace hmc::test {
namespace {

const std::string kSlot = std::to_string(4 * kMiB);

// Ranks with pool 0 joined.
class Ranks : public testing::Test {
 protected:
  void start(SmemRanks& ranks, const std::string& sizes = "0 " + kSlot) {
    ranks.expectOk("bm " + url_ + " " + std::to_string(ranks.count()) + " {}");
    ranks.expectOk("create 0 " + sizes);
    ranks.expectOk("join 0");
  }
  static void expectCopies(SmemRank& from, int target, SmemRank& to, unsigned seed) {
    const std::string rest = std::to_string(target) + " 12345 70000 " + std::to_string(seed);
    Reply reply = from.ask("put 0 " + rest);
    EXPECT_TRUE(reply.ok) << reply;
    reply = to.ask("check 0 " + rest);
    EXPECT_TRUE(reply.ok) << reply;
  }

  const std::string url_ = freeUrl();
};

TEST_F(Ranks, writeToEachOther) {
  SmemRanks ranks(3);
  start(ranks);
  unsigned seed = 0;
  for (int from = 0; from < 3; ++from) {
    for (int to = 0; to < 3; ++to) expectCopies(ranks[from], to, ranks[(to + 1) % 3], ++seed);
  }
}

TEST_F(Ranks, writeToHostSlots) {
  SmemRanks ranks(2);
  start(ranks, kSlot + " 0");
  expectCopies(ranks[0], 1, ranks[1], 1);
  expectCopies(ranks[1], 0, ranks[0], 2);
}

// 16: upstream's second pool overwrote the tables of the first.
TEST_F(Ranks, haveSeveralPoolsAtATime) {
  SmemRanks ranks(2);
  start(ranks);
  ranks.expectOk("create 9 0 2097152");
  ranks.expectOk("join 9");
  EXPECT_TRUE(ranks[0].ask("put 9 1 0 4096 5").ok);
  expectCopies(ranks[0], 1, ranks[1], 6);
  EXPECT_TRUE(ranks[1].ask("check 9 1 0 4096 5").ok);
  ranks.expectOk("destroy 9");
  expectCopies(ranks[1], 0, ranks[0], 7);
}

TEST_F(Ranks, areChosenForThemAndDiffer) {
  SmemRanks ranks(4);
  const auto replies = ranks.ask("bm " + url_ + " 4 -1");
  std::set<std::string> taken;
  for (const Reply& reply : replies) {
    EXPECT_TRUE(reply.ok) << reply;
    taken.insert(reply.text);
  }
  EXPECT_EQ(taken, (std::set<std::string>{"0", "1", "2", "3"}));
  // Together: whoever serves the store waits for the others.
  ranks.expectOk("end");
}

TEST_F(Ranks, goOnWhenOneIsKilled) {
  SmemRanks ranks(4);
  start(ranks);
  for (int i = 0; i < 4; ++i) expectCopies(ranks[i], (i + 1) % 4, ranks[(i + 2) % 4], 10 + i);
  ranks[3].kill();
  expectCopies(ranks[0], 1, ranks[2], 20);
  expectCopies(ranks[1], 2, ranks[0], 21);
  EXPECT_TRUE(eventually([&] { return !ranks[0].ask("put 0 3 0 64 1").ok; }));
  expectCopies(ranks[2], 0, ranks[1], 22);
  // Its successor takes the rank and serves its slot.
  SmemRank again;
  Reply reply = again.ask("bm " + url_ + " 4 3");
  EXPECT_TRUE(reply.ok) << reply;
  EXPECT_TRUE(again.ask("create 0 0 " + kSlot).ok);
  reply = again.ask("join 0");
  EXPECT_TRUE(reply.ok) << reply;
  expectCopies(ranks[0], 3, again, 23);
  expectCopies(again, 1, ranks[1], 24);
}

TEST_F(Ranks, leaveAndComeBack) {
  SmemRanks ranks(3);
  start(ranks);
  expectCopies(ranks[0], 2, ranks[2], 1);
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(ranks[2].ask("leave 0").ok);
    EXPECT_TRUE(eventually([&] { return !ranks[0].ask("put 0 2 0 64 1").ok; }));
    expectCopies(ranks[0], 1, ranks[1], 2);
    const Reply joined = ranks[2].ask("join 0");
    EXPECT_TRUE(joined.ok) << joined;
    expectCopies(ranks[1], 2, ranks[0], 3 + i);
  }
  // 5: upstream's rank that had come back did not hear of others any more.
  EXPECT_TRUE(ranks[1].ask("leave 0").ok);
  EXPECT_TRUE(eventually([&] { return !ranks[2].ask("put 0 1 0 64 1").ok; }));
  EXPECT_TRUE(ranks[1].ask("join 0").ok);
  expectCopies(ranks[2], 1, ranks[1], 9);
}

// Somebody has told the store that it is gone, although it is not.
TEST_F(Ranks, comeBackWhenTheyWereTakenForDead) {
  SmemRanks ranks(3);
  start(ranks);
  StoreView store(url_);
  EXPECT_TRUE(store.remove("groups/pool.bm.0/rank/1"));
  EXPECT_TRUE(eventually([&] { return !ranks[0].ask("put 0 1 0 64 1").ok; }));
  EXPECT_TRUE(eventually(
      [&] { return ranks[1].ask("join 0").ok && !store.keys("groups/pool.bm.0/rank/1").empty(); }));
  expectCopies(ranks[0], 1, ranks[2], 2);
  expectCopies(ranks[1], 2, ranks[0], 3);
  // And once more, to leave.
  EXPECT_TRUE(store.remove("groups/pool.bm.0/rank/1"));
  EXPECT_TRUE(eventually([&] { return !ranks[0].ask("put 0 1 0 64 1").ok; }));
  EXPECT_TRUE(eventually([&] { return !ranks[1].ask("leave 0").ok; }));
  EXPECT_TRUE(ranks[1].ask("join 0").ok);
  expectCopies(ranks[2], 1, ranks[1], 4);
}

// As programs do when something else has failed. The last one serves the store.
TEST_F(Ranks, mayExitWithEverythingOpen) {
  // Nobody joins threads then, which the thread sanitizer would complain about.
  const char* const options = std::getenv("TSAN_OPTIONS");
  SmemRanks ranks(
      3, {{"TSAN_OPTIONS", std::string(options ? options : "") + ":report_thread_leaks=0"}});
  start(ranks);
  for (int rank : {2, 1, 0}) {
    const Reply gone = ranks[rank].ask("exit 3");
    EXPECT_EQ(gone.code, "GONE") << gone;
    EXPECT_EQ(ranks[rank].finish(), 3);
    if (rank == 0) break;
    const std::string put = "put 0 " + std::to_string(rank) + " 0 64 1";
    EXPECT_TRUE(eventually([&] { return !ranks[0].ask(put).ok; }));
  }
}

// startConfigStoreOnly.
TEST_F(Ranks, useAStoreOfAProcessWithoutARank) {
  smem_bm_config_t config;
  ASSERT_EQ(smem_bm_config_init(&config), 0);
  config.startConfigStoreOnly = true;
  ASSERT_EQ(smem_init(0), 0);
  ASSERT_EQ(smem_bm_init(url_.c_str(), 2, 0, &config), 0) << smem_get_last_err_msg();
  EXPECT_EQ(smem_bm_get_rank_id(), UINT32_MAX);
  EXPECT_EQ(smem_bm_create(0, 0, SMEMB_DATA_OP_SDMA, 0, 2 * kMiB, 0), nullptr);
  EXPECT_NE(std::string(smem_get_last_err_msg()).find("StoreOnly"), std::string::npos);
  {
    SmemRanks ranks(2);
    ranks.expectOk("bm " + url_ + " 2 {} 0");
    ranks.expectOk("create 0 0 " + kSlot);
    ranks.expectOk("join 0");
    expectCopies(ranks[0], 1, ranks[1], 1);
  }
  smem_uninit();
}

TEST_F(Ranks, mayEndWithoutLeaving) {
  SmemRanks ranks(2);
  start(ranks);
  EXPECT_TRUE(ranks[1].ask("destroy 0").ok);
  EXPECT_TRUE(eventually([&] { return !ranks[0].ask("put 0 1 0 64 1").ok; }));
  EXPECT_TRUE(ranks[1].ask("create 0 0 " + kSlot).ok);
  EXPECT_TRUE(ranks[1].ask("join 0").ok);
  expectCopies(ranks[0], 1, ranks[1], 3);
}

TEST_F(Ranks, startAgainOnTheSameStore) {
  SmemRanks ranks(2);
  for (int i = 0; i < 3; ++i) {
    start(ranks);
    expectCopies(ranks[0], 1, ranks[1], i);
    expectCopies(ranks[1], 0, ranks[0], i + 1);
    ranks.expectOk("endbm");
  }
}

TEST_F(Ranks, mustTellTheirDirectionsRight) {
  SmemRanks ranks(2);
  start(ranks);
  const Reply reply = ranks[0].ask("move 0 1 0");
  EXPECT_EQ(reply.code, "-2000") << reply;
  EXPECT_NE(reply.text.find("rank 1's device slot"), std::string::npos) << reply;
}

}  // namespace
}  // namespace hmc::test
