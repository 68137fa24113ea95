// The documented flow, as programs of one file: fork, init, create, join, copy, end.

#include <gtest/gtest.h>

#include "smem_ranks.h"

namespace hmc::test {
namespace {

int run(std::vector<std::string> command) {
  return Process(std::move(command)).finish();
}

const std::string kBmRing = HMC_EXAMPLES "/bm_ring";
const std::string kShmAllgather = HMC_EXAMPLES "/shm_allgather";

class Flow : public testing::TestWithParam<const char*> {};

TEST_P(Flow, ringInCWithRanksOfTheCallers) {
  EXPECT_EQ(run({kBmRing, freeUrl(), GetParam()}), 0);
}

// 25: upstream gave two processes of one device the same rank, or none.
TEST_P(Flow, ringInCWithAutomaticRanks) {
  EXPECT_EQ(run({kBmRing, freeUrl(), GetParam(), "auto"}), 0);
}

TEST_P(Flow, ringInCppOnTheLaterInterface) {
  EXPECT_EQ(run({HMC_SMEM_RING_V2, freeUrl(), GetParam()}), 0);
}

TEST_P(Flow, allgatherInC) {
  EXPECT_EQ(run({kShmAllgather, freeUrl(), GetParam()}), 0);
}

INSTANTIATE_TEST_SUITE_P(Ranks, Flow, testing::Values("1", "2", "8"));

TEST(FlowCheck, failsWhereItShould) {
  // The examples' own checks count: a URL that cannot be is an exit status.
  EXPECT_EQ(run({kBmRing, "tcp://127.0.0.1:80", "1"}), 1);
}

}  // namespace
}  // namespace hmc::test
