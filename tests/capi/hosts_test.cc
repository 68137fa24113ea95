// Ranks of two hosts: network namespaces that a virtual cable joins. What they do together goes
// through the store.

#include <gtest/gtest.h>

#include "netns.h"
#include "smem_ranks.h"

namespace hmc::test {
namespace {

const std::string kMapped = "1";  // SMEMS_DATA_OP_MTE
const std::string kFar = "4";     // SMEMS_DATA_OP_ROCE

class SmemNetwork : public testing::Test {
 protected:
  void SetUp() override {
    if (!cable_.whyNot().empty()) GTEST_SKIP() << cable_.whyNot();
    ranks_ = std::make_unique<SmemRanks>(
        std::vector<std::string>{cable_.left(), cable_.right(), cable_.right()});
  }
  void startShared() {
    ranks_->expectOk("shm " + url_ + " 3 {}");
    ranks_->expectOk("object 0 3 {} 2097152");
  }

  Cable cable_;
  const std::string url_ = "tcp://" + Cable::leftAddress() + ":" + std::to_string(freePort());
  std::unique_ptr<SmemRanks> ranks_;
};

TEST_F(SmemNetwork, barriersAndAllgathersPassTheStore) {
  startShared();
  SmemRanks& ranks = *ranks_;
  EXPECT_EQ(ranks[0].ask("reach 0 1").text, kFar);
  EXPECT_EQ(ranks[1].ask("reach 0 0").text, kFar);
  EXPECT_EQ(ranks[1].ask("reach 0 2").text, kMapped);
  ranks.expectOk("barrier 0 20");
  for (const char* size : {"1", "4096", "65536"})
    ranks.expectOk(std::string("allgather 0 ") + size + " 5");
  // Whoever is ahead takes nothing from the others.
  ranks.expectOk("barrier 0");
  ranks.expectOk("drop 0");
  ranks.expectOk("object 0 3 {} 2097152");
  ranks.expectOk("barrier 0");
}

TEST_F(SmemNetwork, aKilledRankEndsABarrierOfTheOthers) {
  startShared();
  SmemRanks& ranks = *ranks_;
  ranks.expectOk("barrier 0 3");
  ranks.expectAKillToEndABarrier();
}

TEST_F(SmemNetwork, copiesReachSlotsOfOtherHosts) {
  SmemRanks& ranks = *ranks_;
  ranks.expectOk("bm " + url_ + " 3 {}");
  ranks.expectOk("create 0 0 4194304");
  ranks.expectOk("join 0");
  EXPECT_TRUE(ranks[0].ask("put 0 2 100 3000000 5").ok);
  EXPECT_TRUE(ranks[1].ask("check 0 2 100 3000000 5").ok);
  EXPECT_TRUE(ranks[1].ask("put 0 0 0 64 6").ok);
  EXPECT_TRUE(ranks[0].ask("check 0 0 0 64 6").ok);
}

}  // namespace
}  // namespace hmc::test
