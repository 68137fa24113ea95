#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>

#include "fakes/must.h"
#include "hmc/deadline.h"
#include "hmc/store.h"
#include "store/server.h"
#include "store/store.h"
#include "unit/store/waits.h"

namespace hmc {
namespace {

using store::kLong;
using store::kShort;
using test::must;

class GatheringTest : public testing::Test {
 protected:
  GatheringOptions rank(uint32_t rank, uint32_t size, const std::string& name = "default") {
    GatheringOptions options;
    options.store = address;
    options.rank = rank;
    options.size = size;
    options.name = name;
    return options;
  }
  static auto gather(const GatheringOptions& options, const std::string& mine) {
    return std::async(std::launch::async, [options, mine] {
      return must(must(Gathering::begin(options)).wait(mine, kLong));
    });
  }
  // Waits until it has joined and misses others; the sentence that names them.
  static std::string missing(Gathering& gathering, const std::string& mine) {
    Status late;
    for (const Deadline end(kLong); !end.passed();) {
      late = gathering.wait(mine, std::chrono::milliseconds(500)).status();
      EXPECT_EQ(late.code(), Code::deadlineExceeded);
      if (late.message().find("did not connect in time") != std::string::npos) break;
    }
    return late.message();
  }
  // A port that was free a moment ago.
  static std::string freeAddress() {
    return must(store::Server::start("tcp://127.0.0.1:0", {}))->address();
  }

  const std::string address = freeAddress();
};

TEST_F(GatheringTest, CancelEndsAWaitAtEachOfItsStages) {
  // Rank 1 finds no store, rank 0 serves it and is alone.
  for (uint32_t alone : {1U, 0U}) {
    Gathering gathering = must(Gathering::begin(rank(alone, 2)));
    auto waiting =
        std::async(std::launch::async, [&] { return gathering.wait("", kLong).status(); });
    if (alone == 0) (void)must(store::openStore(address, {}, kLong));
    gathering.cancel();
    EXPECT_EQ(waiting.get().code(), Code::cancelled);
    EXPECT_EQ(gathering.wait("", kLong).status().code(), Code::cancelled);
  }
}

TEST_F(GatheringTest, EveryoneIsToldWhatEveryoneSaysInAnyOrder) {
  auto second = gather(rank(1, 3), "one");
  auto third = gather(rank(2, 3), std::string("t\0o", 3));
  auto first = gather(rank(0, 3), "");
  const auto everyone = testing::ElementsAre("", "one", std::string("t\0o", 3));
  EXPECT_THAT(first.get(), everyone);
  EXPECT_THAT(second.get(), everyone);
  EXPECT_THAT(third.get(), everyone);
  EXPECT_THAT(gather(rank(0, 1), "alone").get(), testing::ElementsAre("alone"));
}

// Rank 0 goes as soon as it knows that all have left, and its store with it.
TEST_F(GatheringTest, TheStoreOfRankZeroIsThereUntilAllHaveHeard) {
  for (int turn = 0; turn < 40; ++turn) {
    std::vector<std::future<Status>> all;
    for (uint32_t which : {0, 1, 2, 3}) {
      all.push_back(std::async(std::launch::async, [this, which] {
        auto gathering = must(Gathering::begin(rank(which, 4)));
        return gathering.wait("", std::chrono::seconds(20)).status();
      }));
    }
    for (auto& one : all) {
      const Status heard = one.get();
      ASSERT_TRUE(heard.ok()) << "turn " << turn << ": " << heard.toString();
    }
  }
}

TEST_F(GatheringTest, AStoreServesOneAfterTheOtherAndSeveralAtOnce) {
  auto server = must(store::Server::start(address, {}));
  std::vector<std::future<std::vector<std::string>>> all;
  for (const char* name : {"a", "b/c"}) {
    for (uint32_t which : {0, 1}) {
      all.push_back(std::async(std::launch::async, [this, name, which] {
        std::vector<std::string> heard;
        for (int turn = 0; turn < 5; ++turn) {
          const std::string mine = name + std::to_string(which) + std::to_string(turn);
          for (auto& one : must(must(Gathering::begin(rank(which, 2, name))).wait(mine, kLong)))
            heard.push_back(std::move(one));
        }
        return heard;
      }));
    }
  }
  for (size_t i = 0; i < all.size(); ++i) {
    const std::string name = i < 2 ? "a" : "b/c";
    std::vector<std::string> wanted;
    for (int turn = 0; turn < 5; ++turn) {
      for (int which : {0, 1})
        wanted.push_back(name + std::to_string(which) + std::to_string(turn));
    }
    EXPECT_EQ(all[i].get(), wanted);
  }
}

TEST_F(GatheringTest, WhoDoesNotComeIsNamedAndWaitingCanGoOn) {
  auto first = must(Gathering::begin(rank(0, 3)));
  EXPECT_THAT(missing(first, "zero"), testing::HasSubstr("rank 1, 2 of 3"));
  auto second = gather(rank(1, 3), "one");
  auto third = gather(rank(2, 3), "two");
  EXPECT_THAT(must(first.wait("zero", kLong)), testing::ElementsAre("zero", "one", "two"));
  (void)second.get();
  (void)third.get();
}

TEST_F(GatheringTest, ARankThatIsTakenIsRefused) {
  auto server = must(store::Server::start(address, {}));
  auto first = must(Gathering::begin(rank(1, 2)));
  EXPECT_THAT(missing(first, "one"), testing::HasSubstr("rank 0 of 2"));
  auto twin = must(Gathering::begin(rank(1, 2)));
  const Status taken = twin.wait("one", kLong).status();
  EXPECT_EQ(taken.code(), Code::alreadyExists);
  EXPECT_THAT(taken.message(), testing::HasSubstr("rank 1 of default"));
}

TEST_F(GatheringTest, SomebodyAloneNeedsNoStore) {
  GatheringOptions options;
  options.size = 1;
  auto alone = must(Gathering::begin(options));
  EXPECT_EQ(alone.rank(), 0u);
  EXPECT_EQ(must(alone.host()), "127.0.0.1");
  EXPECT_THAT(must(alone.wait("me", kLong)), testing::ElementsAre("me"));
}

TEST_F(GatheringTest, ARankZeroThatDoesNotAnswerIsNamed) {
  auto second = must(Gathering::begin(rank(1, 2)));
  const Status late = second.wait("one", kShort).status();
  EXPECT_EQ(late.code(), Code::deadlineExceeded);
  EXPECT_THAT(late.message(), testing::HasSubstr("rank 0 does not answer at " + address));
  EXPECT_EQ(Gathering::begin(rank(2, 2)).status().code(), Code::invalidArgument);
}

}  // namespace
}  // namespace hmc
