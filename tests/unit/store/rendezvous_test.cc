#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <thread>

#include "fakes/must.h"
#include "store/group.h"
#include "store/memory_store.h"
#include "store/server.h"
#include "unit/store/waits.h"

namespace hmc::store {
namespace {

using test::must;

// Calls the function as each rank, in a thread of its own.
template <class Function>
void inEachRank(uint32_t size, const Function& function) {
  std::vector<std::thread> threads;
  for (uint32_t rank = 0; rank < size; ++rank) {
    threads.emplace_back([rank, &function] { function(rank); });
  }
  for (auto& thread : threads) thread.join();
}

class RendezvousTest : public testing::Test {
 protected:
  const std::shared_ptr<MemoryStore> memory = MemoryStore::create();
};

TEST_F(RendezvousTest, NobodyLeavesABarrierBeforeAllHaveCome) {
  constexpr uint32_t kSize = 8;
  std::atomic<int> come{0};
  inEachRank(kSize, [&](uint32_t rank) {
    Rendezvous rendezvous(memory->connect(), "r", rank, kSize);
    for (int round = 1; round <= 20; ++round) {
      ++come;
      EXPECT_TRUE(rendezvous.barrier(kLong).ok());
      EXPECT_GE(come, round * static_cast<int>(kSize));
    }
  });
}

TEST_F(RendezvousTest, AllgatherGivesEveryonesBytesByRank) {
  constexpr uint32_t kSize = 12;
  inEachRank(kSize, [&](uint32_t rank) {
    Rendezvous rendezvous(memory->connect(), "r", rank, kSize);
    for (int round = 0; round < 5; ++round) {
      const std::string mine(rank, static_cast<char>('a' + round));
      const auto all = must(rendezvous.allgather(mine, kLong));
      ASSERT_EQ(all.size(), kSize);
      for (uint32_t other = 0; other < kSize; ++other) {
        EXPECT_EQ(all[other], std::string(other, static_cast<char>('a' + round)));
      }
      EXPECT_TRUE(rendezvous.barrier(kLong).ok());
    }
  });
}

TEST_F(RendezvousTest, OneRankNeedsNobody) {
  Rendezvous rendezvous(memory->connect(), "r", 0, 1);
  EXPECT_TRUE(rendezvous.barrier(Deadline::now()).ok());
  EXPECT_THAT(must(rendezvous.allgather("x", Deadline::now())), testing::ElementsAre("x"));
}

TEST_F(RendezvousTest, RoundTripsAreFew) {
  constexpr uint32_t kSize = 16;
  constexpr int kRounds = 10;
  std::atomic<uint64_t> before{0};
  inEachRank(kSize, [&](uint32_t rank) {
    Rendezvous rendezvous(memory->connect(), "r", rank, kSize);
    for (int round = 0; round < kRounds; ++round) EXPECT_TRUE(rendezvous.barrier(kLong).ok());
  });
  // Two for each rank, one more for the last, which removes the round before.
  EXPECT_LE(memory->requests(), kRounds * (2 * kSize + 1));
  before = memory->requests();
  inEachRank(kSize, [&](uint32_t rank) {
    Rendezvous rendezvous(memory->connect(), "s", rank, kSize);
    for (int round = 0; round < kRounds; ++round) must(rendezvous.allgather("x", kLong));
  });
  EXPECT_LE(memory->requests() - before, kRounds * (4 * kSize + 1));
}

TEST_F(RendezvousTest, OldRoundsAreRemoved) {
  constexpr uint32_t kSize = 4;
  auto store = memory->connect();
  inEachRank(kSize, [&](uint32_t rank) {
    Rendezvous rendezvous(memory->connect(), "r", rank, kSize);
    for (int round = 0; round < 20; ++round) must(rendezvous.allgather("data", kLong));
  });
  EXPECT_EQ(must(store->list("", kLong)).size(), kSize + 2) << "those of the last round";
}

TEST_F(RendezvousTest, TheDeadlineNamesWhoDidNotComeAndTheNextCallGoesOn) {
  constexpr uint32_t kSize = 4;
  Rendezvous zero(memory->connect(), "r", 0, kSize);
  Rendezvous two(memory->connect(), "r", 2, kSize);
  const Status status = zero.barrier(kShort);
  EXPECT_EQ(status.code(), Code::deadlineExceeded);
  EXPECT_NE(status.message().find("1, 2, 3"), std::string::npos) << status.message();
  const Status gather = two.barrier(kShort);
  EXPECT_NE(gather.message().find("2 of 4"), std::string::npos) << gather.message();
  EXPECT_NE(gather.message().find("1, 3"), std::string::npos) << gather.message();
  inEachRank(kSize, [&](uint32_t rank) {
    Rendezvous mine(memory->connect(), "r", rank, kSize);
    Rendezvous& used = rank == 0 ? zero : rank == 2 ? two : mine;
    EXPECT_TRUE(used.barrier(kLong).ok());
    EXPECT_TRUE(used.barrier(kLong).ok());
  });
}

TEST(ServedRendezvous, LargeGathersFitThroughTheServer) {
  auto server = must(Server::start("tcp://127.0.0.1:0", {}));
  constexpr uint32_t kSize = 6;
  inEachRank(kSize, [&](uint32_t rank) {
    Rendezvous rendezvous(must(openStore(server->address(), {}, kLong)), "r", rank, kSize);
    const std::string mine(size_t{4} << 20, static_cast<char>('a' + rank));
    const auto all = must(rendezvous.allgather(mine, kLong));
    ASSERT_EQ(all.size(), kSize);
    for (uint32_t other = 0; other < kSize; ++other) {
      EXPECT_EQ(all[other].size(), mine.size());
      EXPECT_EQ(all[other].back(), static_cast<char>('a' + other));
    }
  });
}

// The request that is given up is under way, and the store carries it out.
TEST(ServedRendezvous, ARankThatGaveUpAndCallsAgainCountsOnce) {
  auto server = must(Server::start("tcp://127.0.0.1:0", {}));
  auto store = must(openStore(server->address(), {}, kLong));
  Rendezvous zero(store, "r", 0, 2);
  for (int turn = 0; turn < 20; ++turn) {
    EXPECT_EQ(zero.barrier(Deadline::now()).code(), Code::deadlineExceeded);
  }
  EXPECT_EQ(zero.barrier(kShort).code(), Code::deadlineExceeded) << "rank 1 has not come";
  Rendezvous one(must(openStore(server->address(), {}, kLong)), "r", 1, 2);
  EXPECT_TRUE(one.barrier(kLong).ok());
  EXPECT_TRUE(zero.barrier(kLong).ok());
}

TEST(ServedRendezvous, ABarrierThatTheStoreHasForgottenCanBeCalledAgain) {
  auto server = must(Server::start("tcp://127.0.0.1:0", {}));
  const std::string address = server->address();
  auto store = must(openStore(address, {}, kLong));
  Rendezvous zero(store, "r", 0, 2);
  EXPECT_EQ(zero.barrier(kShort).code(), Code::deadlineExceeded);
  server.reset();
  server = must(Server::start(address, {}));
  auto again = std::async(std::launch::async, [&] { return zero.barrier(kLong); });
  Rendezvous one(must(openStore(address, {}, kLong)), "r", 1, 2);
  EXPECT_TRUE(one.barrier(kLong).ok());
  EXPECT_TRUE(again.get().ok());
}

}  // namespace
}  // namespace hmc::store
