// The device header in its host build, between processes.

#include <gtest/gtest.h>

#include "netns.h"
#include "smem_ranks.h"

namespace hmc::test {
namespace {

// Ranks with the objects 0 and 5, bound.
class DeviceHeader : public testing::TestWithParam<size_t> {
 protected:
  void start(SmemRanks& ranks) {
    const std::string count = std::to_string(ranks.count());
    ranks.expectOk("shm " + url_ + " " + count + " {}");
    for (const char* id : {"0", "5"}) {
      ranks.expectOk(std::string("unbound ") + id);
      ranks.expectOk(std::string("object ") + id + " " + count + " {}");
      ranks.expectOk(std::string("bind ") + id);
    }
  }

  std::string url_ = freeUrl();
};

// Upstream's getters read another object's record for every id but 0.
TEST_P(DeviceHeader, readsTheRecordOfItsObject) {
  SmemRanks ranks(GetParam());
  start(ranks);
  ranks.expectOk("getters 5");
  ranks.expectOk("getters 0");
  ranks.expectOk("defaults 0");
  ranks.expectOk("unbound 10");
  ranks.expectOk("unbound 511");
  ranks.expectOk("unbind 5");
  ranks.expectOk("unbound 5");
  ranks.expectOk("defaults 0");
}

TEST_P(DeviceHeader, movesBytesBetweenProcesses) {
  SmemRanks ranks(GetParam());
  start(ranks);
  for (const char* check : {"put", "typed", "rows", "errors"}) {
    ranks.expectOk(std::string(check) + " 0");
    ranks.expectOk(std::string(check) + " 5");
  }
}

TEST_P(DeviceHeader, hasFlagsAtomicsAndBarriers) {
  SmemRanks ranks(GetParam());
  start(ranks);
  for (const char* check : {"flags 0", "atomics 5", "barrier 0 1000", "barrier 5 10"})
    ranks.expectOk(check);
}

INSTANTIATE_TEST_SUITE_P(Count, DeviceHeader, testing::Values(1, 2, 4));

using DeviceHeaderFaults = DeviceHeader;

TEST_F(DeviceHeaderFaults, aBarrierThatTimedOutIsTheSameBarrierWhenRepeated) {
  SmemRanks ranks(2);
  start(ranks);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(ranks[0].ask("alone 0").code, "-2004");
    EXPECT_EQ(ranks[0].ask("alone 0").code, "-2004");
    ranks.expectOk("meet 0");
    ranks.expectOk("barrier 0 3");
  }
}

TEST_F(DeviceHeaderFaults, aKilledRankIsATimeoutOfTheOthers) {
  SmemRanks ranks(3);
  start(ranks);
  ranks.expectOk("barrier 0 3");
  ranks[2].kill();
  for (int rank : {0, 1}) EXPECT_EQ(ranks[rank].ask("alone 0").code, "-2004");
  // The store would wait for the killed one.
  for (int rank : {0, 1}) ranks[rank].kill();
}

TEST_F(DeviceHeaderFaults, anObjectThatIsMadeAgainIsBoundAgain) {
  SmemRanks ranks(2);
  start(ranks);
  ranks.expectOk("getters 5");
  ranks.expectOk("barrier 5 3");
  ranks.expectOk("drop 5");
  ranks.expectOk("object 5 2 {}");
  ranks.expectOk("bind 5");
  ranks.expectOk("getters 5");
  ranks.expectOk("barrier 5 3");
}

TEST_F(DeviceHeaderFaults, ranksOfAnotherHostAreNotReached) {
  const Cable cable;
  if (!cable.whyNot().empty()) GTEST_SKIP() << cable.whyNot();
  url_ = "tcp://" + Cable::leftAddress() + ":7000";
  SmemRanks ranks(std::vector<std::string>{cable.left(), cable.left(), cable.right()});
  start(ranks);
  EXPECT_TRUE(ranks[0].ask("far 0 2 1").ok);
  EXPECT_TRUE(ranks[1].ask("far 0 2 0").ok);
  EXPECT_TRUE(ranks[2].ask("far 5 0 2").ok);
}

// The pages that kernels use are registered with the driver, here a fake one.
TEST_F(DeviceHeaderFaults, objectsOfAnAcceleratorHaveContextsToo) {
  SmemRanks ranks(2, {{"LD_LIBRARY_PATH", HMC_FAKE_CUDA}, {"CUDA_VISIBLE_DEVICES", "0,1"}});
  start(ranks);
  ranks.expectOk("getters 5");
  ranks.expectOk("device 0");
  ranks.expectOk("drop 0");
  ranks.expectOk("object 0 2 {}");
  ranks.expectOk("device 0");
}

}  // namespace
}  // namespace hmc::test
