#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>

#include "control/security.h"
#include "hmc/version.h"
#include "node/descriptions.h"
#include "node/node_impl.h"
#include "node/path_notes.h"
#include "unit/control/test_peer.h"
#include "unit/node/fake_pair.h"
#include "unit/node/node_pair.h"
#include "unit/node/with_measurements.h"

// Which path a pair takes, what it says about it, and when it warns. Runs with HMC_LOG=info.

namespace hmc {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::Not;

const PathReport& over(const std::vector<PathReport>& paths, const std::string& transport) {
  return *std::find_if(paths.begin(), paths.end(),
                       [&](const auto& path) { return path.transport == transport; });
}

class NodePaths : public WithMeasurements {};

TEST_F(NodePaths, aRegionSaysHowItIsReached) {
  NodePair nodes;
  std::vector<char> own(4096);
  auto allocated = must(nodes.a.allocate("allocated", 4096));
  auto registered = must(nodes.a.registerMemory("registered", own.data(), own.size()));
  EXPECT_EQ(must(nodes.toA.open("allocated")).path(), "ipc (mapped)");
  EXPECT_EQ(must(nodes.toA.open("registered")).path(), "ipc (process_vm)");
  EXPECT_EQ(over(nodes.toA.explain(), "ipc").used, "mapped, process_vm");
  EXPECT_EQ(over(nodes.toA.explain(), "tcp").used, "");
  EXPECT_EQ(over(nodes.toB.explain(), "ipc").used, "") << "b opened, not a";
  NodePair slow({"tcp"});
  auto there = must(slow.a.allocate("there", 4096));
  EXPECT_EQ(must(slow.toA.open("there")).path(), "tcp (2 streams)");
}

TEST_F(NodePaths, predictionsGrowWithSizeAndRankTheTransports) {
  NodePair nodes;
  auto small = nodes.toA.explain(Device{}, 8);
  auto large = nodes.toA.explain(Device{}, 64 << 20);
  for (const char* transport : {"ipc", "tcp"}) {
    ASSERT_TRUE(over(small, transport).predictedNs) << transport;
    EXPECT_LT(*over(small, transport).predictedNs, *over(large, transport).predictedNs);
    EXPECT_FALSE(over(small, transport).measuredNs);
  }
  EXPECT_LT(*over(small, "ipc").predictedNs, *over(small, "tcp").predictedNs);
  EXPECT_FALSE(over(small, "verbs").predictedNs);
  EXPECT_FALSE(over(nodes.toA.explain(), "ipc").predictedNs) << "no size was asked about";
}

TEST_F(NodePaths, measuredTimesOfThePathThatIsTakenAreShown) {
  measured({{"ipc", DeviceKind::cpu, "put", 4096, 300},
            {"ipc/process_vm", DeviceKind::cpu, "put", 4096, 900}});
  NodePair nodes;
  EXPECT_EQ(over(nodes.toA.explain(Device{}, 4096), "ipc").measuredNs, 300);
  EXPECT_FALSE(over(nodes.toA.explain(Device{}, 4096), "tcp").measuredNs);
  std::vector<char> own(4096);
  auto registered = must(nodes.a.registerMemory("registered", own.data(), own.size()));
  double mapped = *over(nodes.toA.explain(Device{}, 4096), "ipc").predictedNs;
  must(nodes.toA.open("registered"));
  auto slower = nodes.toA.explain(Device{}, 4096);
  EXPECT_EQ(over(slower, "ipc").measuredNs, 900);
  EXPECT_GT(*over(slower, "ipc").predictedNs, mapped);
}

TEST_F(NodePaths, nothingIsCalledMeasuredThatWasNot) {
  measured(
      {{"ipc", DeviceKind::cpu, "put", 4096, 300}, {"ipc", DeviceKind::cpu, "put", 8192, 600}});
  NodePair nodes;
  for (const size_t between : {4096, 5000, 8192}) {
    const auto path = over(nodes.toA.explain(Device{}, between), "ipc");
    EXPECT_TRUE(path.measuredNs) << between;
    EXPECT_FALSE(path.extrapolatedNs) << between;
  }
  for (const size_t beyond : {size_t{8}, size_t{64} << 30}) {
    const auto path = over(nodes.toA.explain(Device{}, beyond), "ipc");
    EXPECT_FALSE(path.measuredNs) << beyond;
    EXPECT_TRUE(path.extrapolatedNs) << beyond;
  }
}

TEST_F(NodePaths, memoryThatIsNotHereIsExplained) {
  NodePair nodes;
  for (const auto& path : nodes.toA.explain(Device{DeviceKind::cuda, 99}, 8)) {
    EXPECT_FALSE(path.usable) << path.transport;
    EXPECT_FALSE(path.preferred) << path.transport;
    EXPECT_FALSE(path.predictedNs) << path.transport;
  }
  EXPECT_THAT(nodes.toA.explain(Device{DeviceKind::cuda, 99}, 8)[0].reason, HasSubstr("CUDA"));
}

TEST_F(NodePaths, aSlowerPathThanThereCouldBeWarnsOnceWithTheReason) {
  FakeTransport slow("slow", {{"", 1000, 1}});
  slow.b.slowerBecause = "mapping: Too many open files";
  FakePair nodes({slow});
  std::vector<std::shared_ptr<LocalMemory>> targets;
  testing::internal::CaptureStderr();
  for (const char* name : {"one", "two", "three"}) {
    targets.push_back(FakePair::allocate(*nodes.a, name, 64));
    nodes.open(name);
  }
  std::string lines = testing::internal::GetCapturedStderr();
  EXPECT_THAT(lines, HasSubstr("warning: a ("));
  EXPECT_THAT(lines, HasSubstr("cpu memory over slow: mapping: Too many open files"));
  EXPECT_EQ(std::count(lines.begin(), lines.end(), '\n'), 1) << lines;
}

TEST_F(NodePaths, aPathThatTheCallerAskedForIsOnlyInformation) {
  NodePair nodes;
  auto target = must(nodes.a.allocate("target", 64));
  testing::internal::CaptureStderr();
  Node strict = must(Node::create(named("strict", {"tcp"})));
  Peer peer = must(strict.connect(nodes.listener));
  EXPECT_EQ(must(peer.open("target")).path(), "tcp (2 streams)");
  must(peer.open("target"));
  std::string lines = testing::internal::GetCapturedStderr();
  EXPECT_THAT(lines, HasSubstr("info: a ("));
  EXPECT_THAT(lines, HasSubstr("because ipc"));
  EXPECT_THAT(lines, HasSubstr("was not asked for"));
  EXPECT_THAT(lines, Not(HasSubstr("warning")));
  EXPECT_EQ(std::count(lines.begin(), lines.end(), '\n'), 1) << lines;
}

TEST_F(NodePaths, aCallThatNamesItsTransportIsOnlyInformed) {
  NodePair nodes;
  auto target = must(nodes.a.allocate("target", 64));
  auto impl = must(NodeImpl::create(named("c")));
  auto peer = must(impl->connect(nodes.listener, {}, kDefaultTimeout));
  testing::internal::CaptureStderr();
  EXPECT_EQ(must(impl->open(peer, "target", {"tcp"}, kDefaultTimeout))->path(), "tcp (2 streams)");
  EXPECT_EQ(must(impl->open(peer, "target", {"ipc"}, kDefaultTimeout))->path(), "ipc (mapped)");
  std::string lines = testing::internal::GetCapturedStderr();
  EXPECT_THAT(lines, HasSubstr("cpu memory over tcp (2 streams), because ipc was not asked for"));
  EXPECT_THAT(lines, Not(HasSubstr("warning")));
  EXPECT_EQ(std::count(lines.begin(), lines.end(), '\n'), 1) << lines;
  impl->close();
}

TEST_F(NodePaths, aTransportThatFailedWarnsEvenAfterTheInformationThatAnotherWasNotAskedFor) {
  PathNotes notes;
  PassedOver passed;
  EXPECT_FALSE(notes.tellIfSlow("a", DeviceKind::cpu, "tcp", passed, ""));
  passed.addUnasked("ipc");
  testing::internal::CaptureStderr();
  EXPECT_TRUE(notes.tellIfSlow("a", DeviceKind::cpu, "tcp", passed, ""));
  EXPECT_FALSE(notes.tellIfSlow("a", DeviceKind::cpu, "tcp", passed, ""));
  passed.addBroken("verbs", "the cable is out");
  EXPECT_TRUE(notes.tellIfSlow("a", DeviceKind::cpu, "tcp", passed, ""));
  EXPECT_FALSE(notes.tellIfSlow("a", DeviceKind::cpu, "tcp", passed, "no luck"));
  EXPECT_TRUE(notes.tellIfSlow("a", DeviceKind::cuda, "tcp", passed, "no luck"));
  std::string lines = testing::internal::GetCapturedStderr();
  EXPECT_THAT(lines, HasSubstr("cpu memory over tcp: verbs: the cable is out. `hmc doctor`"));
  EXPECT_THAT(lines, HasSubstr("cuda memory over tcp: verbs: the cable is out; no luck. `hmc"));
}

// A peer of an earlier version.
class Elder : public control::test::Events {
  void answer(const std::shared_ptr<control::Channel>&, uint16_t method, std::string_view,
              control::Channel::Answered reply) override {
    reply(error(Code::unsupported, "the elder does not know request {}", method));
  }
};

TEST_F(NodePaths, aPeerThatDoesNotKnowProbesIsSaidToBeTooOld) {
  auto fds = must(FdExchange::create());
  Elder events;
  control::ControlOptions options;
  options.name = "elder";
  ASSERT_TRUE(control::addDefaults(options, {}).ok());
  auto control = must(control::Control::create(options, *fds, events));
  control->setAttributes(Attributes{}.encode());
  Node node = must(Node::create(named("young")));
  Peer elder = must(node.connect(must(control->listen(control::test::kAnyPort))));
  Status status = elder.probe().status();
  EXPECT_EQ(status.code(), Code::unsupported);
  EXPECT_THAT(status.message(), HasSubstr("elder ("));
  EXPECT_THAT(status.message(), HasSubstr("cannot be asked for its version"));
}

TEST_F(NodePaths, aProbeTellsVersionClockAndRoundTrip) {
  NodePair nodes;
  for (Peer* peer : {&nodes.toA, &nodes.toB}) {
    PeerFacts facts = must(peer->probe());
    EXPECT_EQ(facts.version, kVersion);
    EXPECT_GT(facts.roundTrip, 0ns);
    EXPECT_LT(facts.roundTrip, 30s);
    // One clock: what is left is the estimate's error, half a round trip at most.
    EXPECT_LE(std::chrono::abs(facts.clockOffset), facts.roundTrip);
  }
  nodes.toA.close();
  EXPECT_EQ(nodes.toA.probe().status().code(), Code::disconnected);
}

}  // namespace
}  // namespace hmc
