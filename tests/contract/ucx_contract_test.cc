#include <cstdlib>

#include "contract/transport_contract.h"
#include "fakes/quiet_ucx.h"
#include "transport/ucx/lanes.h"
#include "transport/ucx/ucx.h"

namespace hmc::contract {

namespace {

// How the name of the lane that this run is about begins, if it is about one.
std::string wantedLane() {
  const char* wanted = std::getenv("HMC_TEST_UCX_LANE");
  return wanted ? wanted : "";
}

}  // namespace

std::vector<Candidate> candidates() {
  test::keepUcxFromHookingMemory();
  Candidate candidate;
  candidate.name = "ucx";
  candidate.make = [] { return ucx::create(); };
  candidate.memories = {heapMemory(), hostMemory()};
  // Where hardware serves, and nothing else does.
  candidate.reachesStoppedTarget = ucx::isHardware(wantedLane());
  return {candidate};
}

// A run that is about one of UCX's transports would test nothing if UCX took another.
TEST_P(TransportContract, namesTheLaneAndTakesTheOneThatTheRunIsAbout) {
  Buffer target = targetBuffer(*b_, 4096);
  Ends ends = connect();
  auto remote = import(*ends.a, target);
  ASSERT_NE(remote->path(), "");
  EXPECT_EQ(remote->path().rfind(wantedLane(), 0), 0u) << remote->path();
}

}  // namespace hmc::contract
