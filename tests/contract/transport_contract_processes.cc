#include <signal.h>

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

#include "base/random.h"
#include "contract/transport_contract.h"
#include "contract/transport_target.h"
#include "fakes/link_options.h"

// The contract between two real processes, of which one sleeps, stops or dies.
namespace hmc::contract {

namespace {

constexpr size_t kSize = size_t{4} << 20;

std::vector<Subject> subjectsAcrossProcesses() {
  std::vector<Subject> some;
  for (const Subject& subject : subjects()) {
    if (subject.candidate.acrossProcesses) some.push_back(subject);
  }
  return some;
}

}  // namespace

class TransportProcesses : public TransportContract {
 protected:
  // A target process, connected to link_, its memory imported as remote_.
  void start() { start(candidate().lease); }
  void start(std::chrono::milliseconds lease, bool targetDials = false) {
    auto started = TargetProcess::start({GetParam().name(), kSize, lease, targetDials});
    ASSERT_TRUE(started.ok()) << started.status().toString();
    target_ = *std::move(started);
    const LinkOptions options = test::linkOptions(!targetDials, lease);
    heartbeats_ = std::jthread([heard = options.lease](const std::stop_token& stop) {
      std::mutex mutex;
      std::condition_variable_any stopped;
      std::unique_lock lock(mutex);
      while (!stop.stop_requested()) {
        heard->hear();
        heard->confirm(Lease::Clock::now());
        stopped.wait_for(lock, stop, std::chrono::milliseconds(20), [] { return false; });
      }
    });
    auto link = a_->openLink(options);
    ASSERT_TRUE(link.ok()) << link.status().toString();
    link_ = *std::move(link);
    const std::string connectThem = "connect " + hex(link_->address());
    // The side that is dialled connects first, as in a Node.
    if (!targetDials) {
      ASSERT_EQ(ask(connectThem), "ok");
    }
    ASSERT_TRUE(link_->connect(target_->address()).ok());
    if (targetDials) {
      ASSERT_EQ(ask(connectThem), "ok");
    }
    auto remote = link_->importKey(target_->key(), kPatience, nullptr);
    ASSERT_TRUE(remote.ok()) << remote.status().toString();
    remote_ = *std::move(remote);
    local_ = localBuffer(*a_, kSize);
  }
  std::string ask(const std::string& command) {
    auto answer = target_->ask(command);
    return answer.ok() ? *answer : answer.status().toString();
  }
  // Pieces of `size` bytes over the whole memory.
  std::vector<Op> pieces(OpKind kind, size_t size, std::deque<Completion>& completions) {
    std::vector<Op> ops;
    for (size_t at = 0; at < kSize; at += size) {
      completions.emplace_back(1);
      ops.push_back(makeOp(kind, local_, at, *remote_, at, size, completions.back()));
    }
    return ops;
  }
  // The peer is gone: what was accepted ends once, and nothing else does.
  void everyOneEnds(std::deque<Completion>& completions, size_t accepted) {
    const Deadline deadline = kPatience;
    for (size_t i = 0; i < accepted; ++i) {
      ASSERT_TRUE(drive(*a_, completions[i], deadline)) << "operation " << i << " hangs";
      const Code code = completions[i].status().code();
      EXPECT_TRUE(code == Code::ok || code == Code::disconnected)
          << completions[i].status().toString();
    }
    remote_.reset();
    link_.reset();
    for (size_t i = 0; i < completions.size(); ++i) {
      EXPECT_EQ(completions[i].pending(), i < accepted ? 0u : 1u);
    }
  }

  std::unique_ptr<TargetProcess> target_;
  Buffer local_;
  std::unique_ptr<Link> link_;
  std::unique_ptr<RemoteMemory> remote_;
  std::jthread heartbeats_;
};

TEST_P(TransportProcesses, putAndGetReachAProcessThatDoesNothing) {
  start();
  fill(local_.region(), 1);
  Status put = transfer(*a_, *link_, OpKind::put, local_, 0, *remote_, 0, kSize);
  ASSERT_TRUE(put.ok()) << put.toString();
  EXPECT_EQ(ask("check 1"), "ok");
  EXPECT_EQ(ask("fill 2"), "ok");
  Status get = transfer(*a_, *link_, OpKind::get, local_, 0, *remote_, 0, kSize);
  ASSERT_TRUE(get.ok()) << get.toString();
  EXPECT_EQ(differs(local_.region(), 2), "");
}

TEST_P(TransportProcesses, theSideThatWasDialledWorksAsWell) {
  start(std::chrono::minutes(2), true);
  fill(local_.region(), 1);
  Status put = transfer(*a_, *link_, OpKind::put, local_, 0, *remote_, 0, kSize);
  ASSERT_TRUE(put.ok()) << put.toString();
  EXPECT_EQ(ask("check 1"), "ok");
}

TEST_P(TransportProcesses, aKilledPeerEndsEverythingPending) {
  for (OpKind kind : {OpKind::put, OpKind::get}) {
    start();
    ASSERT_TRUE(transfer(*a_, *link_, OpKind::put, local_, 0, *remote_, 0, 100).ok());
    std::deque<Completion> completions;
    std::vector<Op> ops = pieces(kind, 65536, completions);
    size_t accepted = link_->post(ops);
    a_->progress(std::chrono::milliseconds(1));
    target_->send(SIGKILL);
    ASSERT_NO_FATAL_FAILURE(everyOneEnds(completions, accepted));
  }
}

// What was half sent when the peer stopped taking bytes is under way when the connection breaks.
TEST_P(TransportProcesses, aPeerThatIsKilledWhileItIsStoppedEndsEverythingPending) {
  for (int round = 0; round < 6; ++round) {
    SCOPED_TRACE(round);
    start();
    ASSERT_TRUE(transfer(*a_, *link_, OpKind::put, local_, 0, *remote_, 0, 100).ok());
    target_->send(SIGSTOP);
    std::deque<Completion> completions;
    const size_t piece = std::min(a_->facts().largest, size_t{256} << 10) >> round % 3;
    std::vector<Op> ops = pieces(OpKind::put, piece, completions);
    const size_t accepted = link_->post(ops);
    for (int i = 0; i < round; ++i) a_->progress(std::chrono::milliseconds(1));
    target_->send(SIGKILL);
    ASSERT_NO_FATAL_FAILURE(everyOneEnds(completions, accepted));
  }
}

TEST_P(TransportProcesses, aStoppedTargetIsReached) {
  if (!candidate().reachesStoppedTarget) GTEST_SKIP() << "software serves the target side";
  start();
  ASSERT_TRUE(transfer(*a_, *link_, OpKind::put, local_, 0, *remote_, 0, 100).ok());
  fill(local_.region(), 1);
  target_->send(SIGSTOP);
  Status put = transfer(*a_, *link_, OpKind::put, local_, 0, *remote_, 0, kSize);
  EXPECT_TRUE(put.ok()) << put.toString();
  Status get = transfer(*a_, *link_, OpKind::get, local_, 0, *remote_, 0, kSize);
  EXPECT_TRUE(get.ok()) << get.toString();
  target_->send(SIGCONT);
  EXPECT_EQ(ask("check 1"), "ok");
}

// The peer cannot answer the close: its lease does, and what it finds in its sockets and queues
// when it wakes up stays there.
TEST_P(TransportProcesses, aStoppedTargetIsFencedByItsLease) {
  start(std::chrono::milliseconds(1000));
  ASSERT_TRUE(transfer(*a_, *link_, OpKind::put, local_, 0, *remote_, 0, 100).ok());
  fill(local_.region(), 1);
  target_->send(SIGSTOP);
  std::deque<Completion> completions;
  std::vector<Op> ops = pieces(OpKind::put, 16384, completions);
  size_t accepted = link_->post(ops);
  a_->progress(std::chrono::milliseconds(10));
  {
    // From another thread: progress() must notice.
    std::jthread closer([&] { link_->close(Status(Code::cancelled, "the test cancels")); });
    for (size_t i = 0; i < accepted; ++i) ASSERT_TRUE(drive(*a_, completions[i])) << i;
  }
  for (size_t i = 0; i < completions.size(); ++i) {
    EXPECT_EQ(completions[i].pending(), i < accepted ? 0u : 1u);
  }
  target_->send(SIGCONT);
  ASSERT_EQ(ask("fill 2"), "ok");
  for (int i = 0; i < 5; ++i) {
    a_->progress(std::chrono::milliseconds(20));
    ASSERT_EQ(ask("check 2"), "ok");
  }
}

TEST_P(TransportProcesses, destroyingALinkToAStoppedTargetEnds) {
  start(std::chrono::milliseconds(500));
  ASSERT_TRUE(transfer(*a_, *link_, OpKind::put, local_, 0, *remote_, 0, 100).ok());
  target_->send(SIGSTOP);
  std::deque<Completion> completions;
  std::vector<Op> ops = pieces(OpKind::put, 16384, completions);
  size_t accepted = link_->post(ops);
  remote_.reset();
  link_.reset();
  for (size_t i = 0; i < accepted; ++i) EXPECT_TRUE(completions[i].done());
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(TransportProcesses);
INSTANTIATE_TEST_SUITE_P(All, TransportProcesses, testing::ValuesIn(subjectsAcrossProcesses()),
                         subjectName);

}  // namespace hmc::contract
