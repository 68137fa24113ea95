#include <gtest/gtest.h>

#include "base/error.h"
#include "fakes/fake_accelerator.h"
#include "hmc/node.h"
#include "memory/backends.h"
#include "memory/copy.h"
#include "unit/node/node_pair.h"

// Transfers that are ordered with a user's stream, over a path that lets the device wait (ipc) and
// one where the engine does (tcp).
namespace hmc {
namespace {

using namespace std::chrono_literals;

constexpr size_t kStreamSize = size_t{3} << 20;
constexpr auto kStreamPatience = 60s;
const std::vector<Block> kStreamWhole{{0, 0, kStreamSize}};

class NodeStream : public testing::TestWithParam<const char*> {
 protected:
  static Node makeNode() {
    NodeOptions options;
    options.transports = {GetParam()};
    return must(Node::create(options));
  }
  static void write(const LocalRegion& to, char byte) {
    std::string bytes(kStreamSize, byte);
    ASSERT_TRUE(copy({to.data(), kStreamSize, to.device()}, {bytes.data(), kStreamSize, {}}).ok());
  }
  static std::string read(const LocalRegion& from) {
    std::string bytes(kStreamSize, '?');
    EXPECT_TRUE(
        copy({bytes.data(), kStreamSize, {}}, {from.data(), kStreamSize, from.device()}).ok());
    return bytes;
  }
  // A kernel of the user's that has not run yet: it writes 'k' into our memory.
  void enqueueKernel() {
    ASSERT_TRUE(gpu.stall(stream, true).ok());
    ASSERT_TRUE(
        gpu.copyAll({local.data(), kStreamSize, kGpu}, {kernel.data(), kStreamSize, {}}, stream)
            .ok());
  }
  void runKernel() { ASSERT_TRUE(gpu.stall(stream, false).ok()); }

  FakeAccelerator& gpu = static_cast<FakeAccelerator&>(*must(findBackend(kGpu)));
  const DeviceQueue stream = must(gpu.createStream(0));
  std::string kernel = std::string(kStreamSize, 'k');
  Node owner = makeNode();
  Node node = makeNode();
  const LocalRegion target = must(owner.allocate("target", kStreamSize, kGpu));
  const LocalRegion local = must(node.allocate("", kStreamSize, kGpu));
  const Peer peer = must(node.connect(must(owner.listen("tcp://127.0.0.1:0"))));
  const RemoteRegion remote = must(peer.open("target"));
};

TEST_P(NodeStream, aPutWaitsForTheKernelBeforeItAndItsCallerDoesNot) {
  write(local, 'o');
  enqueueKernel();
  Ticket ticket = must(remote.startPut(local, kStreamWhole, {stream.stream, nullptr}));
  EXPECT_EQ(ticket.wait(20ms).code(), Code::deadlineExceeded);
  EXPECT_EQ(read(target), std::string(kStreamSize, '\0'));
  runKernel();
  EXPECT_TRUE(ticket.wait(kStreamPatience).ok());
  EXPECT_EQ(read(target), kernel);
}

TEST_P(NodeStream, onlyWhatThisProcessDoesAtOnceWaitsForNobody) {
  const LocalRegion host = must(node.allocate("", 8));
  const bool mapped = std::string(GetParam()) == "ipc";
  EXPECT_EQ(remote.waitsForNobody(local), mapped);
  EXPECT_EQ(remote.waitsForNobody(host), mapped);
  EXPECT_FALSE(remote.waitsForNobody(host, stream.stream)) << "put() would not see the mistake";
  enqueueKernel();
  EXPECT_FALSE(remote.waitsForNobody(local, stream.stream));
  runKernel();
}

TEST_P(NodeStream, aListMayGoBeforeItsTurnComes) {
  enqueueKernel();
  auto blocks = std::make_unique<std::vector<Block>>();
  for (size_t at = 0; at < kStreamSize; at += 4096) blocks->push_back({at, at, 4096});
  Ticket ticket = must(remote.startPut(local, *blocks, {stream.stream, nullptr}));
  blocks.reset();
  runKernel();
  EXPECT_TRUE(ticket.wait(kStreamPatience).ok());
  EXPECT_TRUE(read(target) == kernel);
}

TEST_P(NodeStream, aKernelWaitsForTheGetBeforeItWithoutTheHost) {
  write(target, 'g');
  write(local, 'o');
  std::string seen(kStreamSize, '?');
  Ticket ticket = must(remote.startGet(local, kStreamWhole, {nullptr, stream.stream}));
  ASSERT_TRUE(
      gpu.copyAll({seen.data(), kStreamSize, {}}, {local.data(), kStreamSize, kGpu}, stream).ok());
  auto after = must(gpu.event(0));
  ASSERT_TRUE(after->record(stream).ok());
  // Nobody waits for the ticket: the stream alone does.
  ASSERT_TRUE(waitFor(*after, kStreamPatience).ok());
  EXPECT_EQ(seen, std::string(kStreamSize, 'g'));
  EXPECT_TRUE(ticket.wait(kStreamPatience).ok());
}

TEST_P(NodeStream, aStreamGoesOnWhenItsTransferFails) {
  enqueueKernel();
  Ticket ticket = must(remote.startGet(local, kStreamWhole, {stream.stream, stream.stream}));
  auto after = must(gpu.event(0));
  ASSERT_TRUE(after->record(stream).ok());
  EXPECT_EQ(must(node.nextPeerEvent(kStreamPatience)).kind, PeerEvent::Kind::joined);
  owner.close();
  EXPECT_EQ(must(node.nextPeerEvent(kStreamPatience)).kind, PeerEvent::Kind::left);
  EXPECT_EQ(ticket.wait(kStreamPatience).code(), Code::disconnected);
  runKernel();
  EXPECT_TRUE(waitFor(*after, kStreamPatience).ok());
}

TEST_P(NodeStream, whatStillWaitsForItsStreamCanBeCancelled) {
  write(local, 'o');
  enqueueKernel();
  Ticket ticket = must(remote.startPut(local, kStreamWhole, {stream.stream, nullptr}));
  EXPECT_EQ(ticket.cancel().code(), Code::cancelled);
  EXPECT_EQ(ticket.wait(kStreamPatience).code(), Code::cancelled);
  runKernel();
  EXPECT_EQ(read(target), std::string(kStreamSize, '\0'));
}

TEST_P(NodeStream, aStreamGoesOnWhenItsNodeIsClosed) {
  enqueueKernel();
  Ticket ticket = must(remote.startGet(local, kStreamWhole, {stream.stream, stream.stream}));
  auto after = must(gpu.event(0));
  ASSERT_TRUE(after->record(stream).ok());
  node.close();
  runKernel();
  EXPECT_TRUE(waitFor(*after, kStreamPatience).ok());
  (void)ticket.wait(kStreamPatience);
}

TEST_P(NodeStream, memoryOfTheHostHasNoStream) {
  const LocalRegion host = must(node.allocate("", kStreamSize));
  auto refused = remote.startPut(host, kStreamWhole, {stream.stream, nullptr});
  EXPECT_EQ(refused.status().code(), Code::invalidArgument);
}

TEST_P(NodeStream, aCopyBetweenHostsHasNoStreamEither) {
  const LocalRegion there = must(owner.allocate("host", kStreamSize));
  const LocalRegion here = must(node.allocate("", kStreamSize));
  const RemoteRegion host = must(peer.open("host"));
  auto refused = host.startPut(here, std::vector<Block>{{0, 0, 8}}, {stream.stream, nullptr});
  EXPECT_EQ(refused.status().code(), Code::invalidArgument);
}

INSTANTIATE_TEST_SUITE_P(Over, NodeStream, testing::Values("ipc", "tcp"),
                         [](const auto& over) { return std::string(over.param); });

}  // namespace
}  // namespace hmc
