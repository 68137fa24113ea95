// Taking memory back from peers that read and write it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <future>
#include <thread>

#include "unit/node/fake_pair.h"
#include "unit/node/node_pair.h"
#include "unit/node/path_pair.h"

namespace hmc {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

constexpr size_t kRevokedSize = size_t{8} << 20;

class Revoke : public testing::TestWithParam<PathCase> {
 protected:
  std::shared_ptr<LocalMemory> registerTarget(const std::string& name = "target") {
    if (GetParam().allocated) return FakePair::allocate(*nodes_.a, name, kRevokedSize);
    return must(nodes_.a->registerMemory(name, {bytes_.data(), kRevokedSize, Device{}},
                                         Access::readWrite,
                                         /*owned=*/false));
  }
  std::shared_ptr<LocalMemory> source() { return FakePair::allocate(*nodes_.b, "", kRevokedSize); }
  static std::string bytesOf(const LocalMemory& memory) {
    return std::string(memory.host(), memory.region().size);
  }

  std::vector<char> bytes_ = std::vector<char>(kRevokedSize);
  PathPair nodes_{GetParam()};
};

TEST_P(Revoke, endsThePutsOfAPeer) {
  for (size_t size : {size_t{8}, size_t{4096}, size_t{3} << 20}) {
    auto target = registerTarget();
    auto remote = nodes_.open("target");
    EXPECT_THAT(remote->path(), HasSubstr(GetParam().path));
    PuttingThread one(remote, source(), size);
    PuttingThread two(remote, source(), size, kRevokedSize / 2);
    for (PuttingThread* writer : {&one, &two}) writer->await(writer->done, 20);
    const Status status = target->revoke(kDefaultTimeout);
    EXPECT_TRUE(status.ok()) << status.toString();
    const std::string before = bytesOf(*target);
    for (PuttingThread* writer : {&one, &two}) {
      writer->await(writer->failed, 3);
      const Status outcome = writer->outcome();
      EXPECT_EQ(outcome.code(), Code::notFound);
      EXPECT_THAT(outcome.message(), HasSubstr("region \"target\" of a ("));
      EXPECT_THAT(outcome.message(), HasSubstr("was revoked by its owner"));
    }
    EXPECT_TRUE(bytesOf(*target) == before) << "a put of " << size << " bytes came late";
    EXPECT_TRUE(nodes_.toA->channel().status().ok());
  }
}

TEST_P(Revoke, happensWhenTheMemoryGoes) {
  auto target = registerTarget();
  auto remote = nodes_.open("target");
  PuttingThread writer(remote, source(), 4096);
  writer.await(writer.done, 20);
  target.reset();
  const std::vector<char> before = bytes_;
  writer.await(writer.failed, 3);
  EXPECT_THAT(writer.outcome().message(), HasSubstr("revoked"));
  EXPECT_TRUE(bytes_ == before);
}

TEST_P(Revoke, freesTheNameForOtherMemory) {
  auto target = registerTarget();
  auto old = nodes_.open("target");
  ASSERT_TRUE(target->revoke(kDefaultTimeout).ok());
  EXPECT_EQ(nodes_.b->open(nodes_.toA, "target", {}, kDefaultTimeout).status().code(),
            Code::notFound);
  auto next = FakePair::allocate(*nodes_.a, "target", 64);
  auto remote = nodes_.open("target");
  auto local = source();
  std::memcpy(local->host(), "hello", 5);
  EXPECT_EQ(old->run(OpKind::put, *local, 0, 0, 5, kDefaultTimeout).code(), Code::notFound);
  EXPECT_TRUE(remote->run(OpKind::put, *local, 0, 0, 5, kDefaultTimeout).ok());
  EXPECT_EQ(old->run(OpKind::get, *local, 0, 0, 5, kDefaultTimeout).code(), Code::notFound);
  EXPECT_EQ(std::string(next->host(), 5), "hello");
  EXPECT_TRUE(target->revoke(kDefaultTimeout).ok()) << "once more does no harm";
}

TEST_P(Revoke, leavesTransfersOfOurOwnAlone) {
  auto target = registerTarget();
  auto remote = nodes_.open("target");
  auto theirs = must(nodes_.b->registerMemory(
      "theirs", must(hostBackend().allocate(0, kRevokedSize)), Access::readWrite, /*owned=*/true));
  auto peer = nodes_.a->peers().front();
  auto back = must(nodes_.a->open(peer, "theirs", {}, kDefaultTimeout));
  ASSERT_TRUE(target->revoke(kDefaultTimeout).ok());
  std::memset(target->host(), 3, kRevokedSize);
  EXPECT_TRUE(back->run(OpKind::put, *target, 0, 0, kRevokedSize, kDefaultTimeout).ok());
  EXPECT_EQ(bytesOf(*theirs), std::string(kRevokedSize, 3));
}

TEST_P(Revoke, meetsPeersThatAreJustOpening) {
  std::atomic<bool> over{false};
  std::thread opener([&] {
    auto local = source();
    while (!over.load()) {
      auto remote = nodes_.b->open(nodes_.toA, "target", {}, kDefaultTimeout);
      if (!remote.ok()) continue;
      for (int i = 0; i < 10; ++i)
        (void)(*remote)->run(OpKind::put, *local, 0, 0, 4096, kDefaultTimeout);
    }
  });
  for (int round = 0; round < 20; ++round) {
    auto target = registerTarget();
    EXPECT_TRUE(target->revoke(kDefaultTimeout).ok());
    std::memset(target->host(), 7, kRevokedSize);
    EXPECT_EQ(bytesOf(*target), std::string(kRevokedSize, 7));
  }
  over = true;
  opener.join();
}

TEST_P(Revoke, endsATransferThatNobodyWaitsFor) {
  auto target = registerTarget();
  auto remote = nodes_.open("target");
  auto local = source();
  std::vector<Block> blocks(64, Block{0, 0, kRevokedSize});
  Ticket ticket = must(RemoteMapping::start(remote, OpKind::put, local, blocks));
  ASSERT_TRUE(target->revoke(kDefaultTimeout).ok());
  std::memset(target->host(), 7, kRevokedSize);
  const Status status = ticket.wait();
  EXPECT_TRUE(status.ok() || status.code() == Code::notFound) << status.toString();
  EXPECT_EQ(bytesOf(*target), std::string(kRevokedSize, 7));
}

INSTANTIATE_TEST_SUITE_P(Paths, Revoke, testing::ValuesIn(everyPath()),
                         [](const auto& one) { return one.param.name; });

TEST(RevokeWithAUser, waitsForOurOwnThreadsBeyondItsTimeout) {
  auto node = must(NodeImpl::create(named("a", {"tcp"})));
  std::vector<char> bytes(4096);
  auto memory = must(
      node->registerMemory("x", {bytes.data(), bytes.size(), Device{}}, Access::readWrite, false));
  auto user = must(memory->exported()->use());
  auto revoked = std::async(std::launch::async, [&] { return memory->revoke(1ms); });
  EXPECT_EQ(revoked.wait_for(100ms), std::future_status::timeout);
  user.reset();
  const Status status = revoked.get();
  EXPECT_TRUE(status.ok()) << status.toString();
  memory.reset();
  node->close();
}

TEST(RevokeOfMappedMemory, leavesAPointerThatDoesNoHarm) {
  NodePair nodes;
  auto target = must(nodes.a.allocate("target", kRevokedSize));
  auto remote = must(nodes.toA.open("target"));
  auto* there = static_cast<char*>(remote.data());
  ASSERT_NE(there, nullptr);
  std::strcpy(there, "seen by the owner");
  EXPECT_STREQ(static_cast<char*>(target.data()), "seen by the owner");
  ASSERT_TRUE(target.revoke().ok());
  std::strcpy(there, "not seen any more");
  EXPECT_STREQ(static_cast<char*>(target.data()), "seen by the owner");
}

TEST(RemoteRegionData, isNullWhereNothingIsMapped) {
  NodePair nodes({"tcp"});
  auto target = must(nodes.a.allocate("target", kRevokedSize));
  EXPECT_EQ(must(nodes.toA.open("target")).data(), nullptr);
}

// A process of its own that opens "target" of the Node behind the pipe, and puts until that fails.
int putUntilItFails(int addressPipe) {
  std::string address(256, '\0');
  address.resize(static_cast<size_t>(
      std::max<ssize_t>(0, ::read(addressPipe, address.data(), address.size()))));
  Node node = must(Node::create(named("child")));
  Peer peer = must(node.connect(address));
  auto remote = must(peer.open("target"));
  auto local = must(node.allocate("", 4096));
  if (!remote.put(local, 0, 0, 8).ok() || !peer.notify("it works").ok()) return 1;
  while (remote.put(local, 0, 0, 8).ok()) {
  }
  return 0;
}

TEST(RevokeFromAStoppedProcess, namesAndDisconnectsIt) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "the thread sanitizer ends a forked child that makes threads";
#endif
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const pid_t child = fork();
  if (child == 0) _exit(putUntilItFails(ends[0]));
  NodeOptions options = named("owner");
  options.lease = 60s;
  Node owner = must(Node::create(options));
  auto target = must(owner.allocate("target", 4096));
  const std::string address = must(owner.listen("tcp://127.0.0.1:0"));
  ASSERT_EQ(::write(ends[1], address.data(), address.size()), static_cast<ssize_t>(address.size()));
  must(owner.nextNote());
  ASSERT_EQ(kill(child, SIGSTOP), 0);
  int state = 0;
  ASSERT_EQ(waitpid(child, &state, WUNTRACED), child);
  const Status status = target.revoke(200ms);
  EXPECT_EQ(status.code(), Code::deadlineExceeded);
  EXPECT_THAT(status.message(), HasSubstr("region \"target\""));
  EXPECT_THAT(status.message(), HasSubstr("child (127.0.0.1:"));
  EXPECT_THAT(status.message(), HasSubstr("200 ms"));
  ASSERT_EQ(kill(child, SIGCONT), 0);
  ASSERT_EQ(waitpid(child, &state, 0), child);
  EXPECT_TRUE(WIFEXITED(state) && WEXITSTATUS(state) == 0);
  for (int end : ends) close(end);
}

}  // namespace
}  // namespace hmc
