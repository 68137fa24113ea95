#include <gtest/gtest.h>

#include <deque>
#include <iostream>
#include <memory>
#include <random>
#include <thread>

#include "fakes/refused_calls.h"
#include "fence_ways.h"

// Cancel is a fence, and so is a deadline that passes: when the call returns, the memory at both
// ends is its owner's. HMC_TEST_CYCLES says how often.
namespace hmc::test {
namespace {

using namespace std::chrono_literals;

constexpr size_t kWindows = 4;
// What the target's memory is used for after a transfer, and ours; and the bytes of a put.
constexpr int kTheirs = 0xEE, kOurs = 0x11, kPut = 0x77;

// Half of one that was put, so that a cycle is not over in the first copy.
std::vector<Block> blocksOf(const Way& way, size_t window, bool list) {
  const size_t at = window * way.size;
  if (!list) return {{at, at, way.size}};
  std::vector<Block> blocks;
  constexpr size_t kBlock = 3000;
  for (size_t done = 0; done + kBlock <= way.size; done += 2 * kBlock)
    blocks.push_back({at + done, at + done, kBlock});
  return blocks;
}

class FenceBase : public testing::TestWithParam<Way> {
 protected:
  const Way& way() const { return GetParam(); }

  NodeOptions options(std::chrono::milliseconds lease) const {
    NodeOptions options;
    options.name = "origin";
    options.transports = {way().transport};
    options.lease = lease;
    options.heartbeat = lease / 8;
    if (way().tls) {
      options.secret = "of the fence";
      options.tls.mode = TlsOptions::Mode::required;
    }
    return options;
  }
  // In a thread of its own, which gives up system calls where the way needs it.
  template <class Body>
  static void inAThread(const Way& way, Body body) {
    std::string thrown;
    bool refused = true;
    std::thread([&] {
      if (way.name == "ipcRing") refused = refuseProcessVm();
      try {
        if (refused) body();
      } catch (const std::exception& error) {
        thrown = error.what();
      }
    }).join();
    if (!refused) GTEST_SKIP() << "this machine does not let us refuse process_vm_writev";
    ASSERT_EQ(thrown, "");
  }
  // At random until the transfer would be over.
  static void pause(std::mt19937_64& random, std::chrono::nanoseconds most) {
    const auto end = std::chrono::steady_clock::now() +
                     std::chrono::nanoseconds(random() % (1 + static_cast<uint64_t>(most.count())));
    while (std::chrono::steady_clock::now() < end) {
    }
  }
};

// An origin in this process, connected.
struct Origin {
  Origin(const NodeOptions& options, Target& target, const Way& way)
      : node(Node::create(options).value()),
        peer(node.connect(target.address(), 30s).value()),
        remote(peer.open("memory", 30s).value()),
        local(node.allocate("", kWindows * way.size).value()),
        queue(CompletionQueue::create().value()) {
    target.opened(remote);
  }
  char* at(size_t window, const Way& way) const {
    return static_cast<char*>(local.data()) + window * way.size;
  }

  Node node;
  hmc::Peer peer;
  RemoteRegion remote;
  LocalRegion local;
  CompletionQueue queue;
};

class Fence : public FenceBase {
 protected:
  // What one cycle does: puts and gets, one block or many, cancelled or with a deadline.
  Status run(Origin& origin, std::mt19937_64& random, size_t window, unsigned kind) const {
    const bool put = kind % 2 == 0;
    if (kind % 8 >= 6) {
      const auto timeout = std::chrono::nanoseconds(random() % (1 + typical_.count()));
      const size_t at = window * way().size;
      return put ? origin.remote.put(origin.local, at, at, way().size, timeout)
                 : origin.remote.get(origin.local, at, at, way().size, timeout);
    }
    const auto blocks = blocksOf(way(), window, kind % 8 >= 4);
    auto started = put ? origin.remote.startPut(origin.local, blocks)
                       : origin.remote.startGet(origin.local, blocks);
    if (!started.ok()) return started.status();
    EXPECT_TRUE(origin.queue.watch(*started, 1).ok());
    pause(random, typical_);
    const Status outcome = started->cancel();
    origin.queue.take();
    return outcome;
  }

  void cycles(int count) {
    Target target(way(), kWindows, 60s);
    if (!target.whyNot().empty()) GTEST_SKIP() << target.whyNot();
    Origin origin(options(60s), target, way());
    ASSERT_EQ(origin.remote.path().rfind(way().path, 0), 0u) << origin.remote.path();
    for (size_t window = 0; window < kWindows; ++window) {
      fillWith(origin.at(window, way()), way().size, kOurs);
      target.reuse(window, kTheirs);
    }
    typical_ = 30s;
    for (int i = 0; i < 5; ++i) {
      const auto begin = std::chrono::steady_clock::now();
      ASSERT_TRUE(origin.remote.get(origin.local, 0, 0, way().size, 30s).ok());
      typical_ = std::min(typical_, std::chrono::steady_clock::now() - begin);
    }
    fillWith(origin.at(0, way()), way().size, kOurs);
    std::mt19937_64 random(1);
    int i = 0, ended = 0;
    const Deadline patience(kPatience);
    // One that never meets a transfer under way shows nothing.
    for (; i < count || (ended == 0 && !patience.passed()); ++i) {
      if (HasFailure()) return;
      const size_t window = static_cast<size_t>(i) % kWindows;
      // What has come since this window was used, three cycles ago.
      EXPECT_EQ(target.changed(window, kTheirs), 0u) << "bytes at the target, cycle " << i;
      EXPECT_EQ(differing(origin.at(window, way()), way().size, kOurs), 0u) << "here, cycle " << i;
      fillWith(origin.at(window, way()), way().size, kPut);
      const Status outcome = run(origin, random, window, random() % 8);
      fillWith(origin.at(window, way()), way().size, kOurs);
      target.reuse(window, kTheirs);
      const Code code = outcome.code();
      EXPECT_TRUE(outcome.ok() || code == Code::cancelled || code == Code::deadlineExceeded)
          << outcome.toString();
      ended += outcome.ok() ? 0 : 1;
    }
    for (size_t window = 0; window < kWindows; ++window) {
      EXPECT_EQ(target.changed(window, kTheirs), 0u) << "at the end";
      EXPECT_EQ(differing(origin.at(window, way()), way().size, kOurs), 0u) << "at the end";
    }
    EXPECT_GT(ended, 0) << "no transfer was met under way";
    std::cout << way().name << ": " << i << " cycles, " << ended << " met under way\n";
  }

  std::chrono::nanoseconds typical_{};
};

TEST_P(Fence, cancelAndDeadlineGiveTheMemoryBackAtBothEnds) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  constexpr int kUsual = 15;
#else
  constexpr int kUsual = 60;
#endif
  inAThread(way(), [&] { cycles(cyclesOr(kUsual)); });
}

std::string wayName(const testing::TestParamInfo<Way>& info) {
  return info.param.name;
}

INSTANTIATE_TEST_SUITE_P(Way, Fence, testing::ValuesIn(fenceWays()), wayName);

// The target is stopped in the middle of a put and cannot say that it applies nothing more: the
// lease is the fence. The two ends have different ones, of which the shorter counts.
class FenceOfAStoppedTarget : public FenceBase {
 protected:
  static constexpr std::chrono::milliseconds kLeases[] = {500ms, 10s};

  // A machine that is busy may lose a connection of a short lease by itself.
  std::unique_ptr<Origin> connect(Target& target, std::chrono::milliseconds lease) const {
    std::unique_ptr<Origin> origin;
    const bool came = eventually([&] {
      try {
        origin = std::make_unique<Origin>(options(lease), target, way());
      } catch (const std::runtime_error&) {
      }
      return origin != nullptr;
    });
    if (!came) throw std::runtime_error("the target cannot be connected to");
    return origin;
  }

  // One put that is stopped under way, then cancelled. Memory at the target is reused before it
  // goes on.
  void stopOnce(Target& target, std::chrono::milliseconds lease, std::mt19937_64& random) {
    auto origin = connect(target, lease);
    fillWith(origin->at(0, way()), kWindows * way().size, kPut);
    for (size_t window = 0; window < kWindows; ++window) target.reuse(window, kTheirs);
    auto ticket =
        origin->remote.startPut(origin->local, std::vector<Block>{{0, 0, kWindows * way().size}});
    if (!ticket.ok()) return;  // lost by itself
    ASSERT_TRUE(origin->queue.watch(*ticket, 1).ok());
    pause(random, 2ms);
    target.process()->stop();
    (void)ticket->cancel();  // its outcome, which may be that it was done before
    for (size_t window = 0; window < kWindows; ++window) target.reuse(window, kTheirs);
    ++stops_;
    target.process()->resume();
    // Once it has served the next one for a while, it has read what the last one had sent.
    auto next = connect(target, lease);
    for (int i = 0; i < 20; ++i) (void)next->remote.get(next->local, 0, 0, way().size, 30s);
    size_t late = 0;
    for (size_t window = 0; window < kWindows; ++window) late += target.changed(window, kTheirs);
    EXPECT_LE(late, way().mostLate);
    late_ += late > 0 ? 1 : 0;
    mostLate_ = std::max(mostLate_, late);
  }

  void cycles(int count) {
    std::mt19937_64 random(2);
    std::deque<Target> targets;
    for (const auto lease : kLeases) targets.emplace_back(way(), kWindows, lease);
    if (!targets[0].whyNot().empty()) GTEST_SKIP() << targets[0].whyNot();
    for (int i = 0; i < count && !HasFailure(); ++i)
      stopOnce(targets[i % 2], kLeases[1 - i % 2], random);
    std::cout << way().name << ": " << stops_ << " stops, " << late_
              << " with bytes after the cancel, " << mostLate_ << " at the most\n";
  }

  int stops_ = 0;
  int late_ = 0;
  size_t mostLate_ = 0;
};

TEST_P(FenceOfAStoppedTarget, appliesNothingThatTheLeaseHasEnded) {
  inAThread(way(), [&] { cycles(cyclesOr(2)); });
}

std::vector<Way> waysThatThePeerServes() {
  std::vector<Way> some;
  for (const Way& way : fenceWays()) {
    if (way.kind == "own" && way.transport != "verbs" && way.name != "ipcProcessVm")
      some.push_back(way);
  }
  return some;
}

INSTANTIATE_TEST_SUITE_P(Way, FenceOfAStoppedTarget, testing::ValuesIn(waysThatThePeerServes()),
                         wayName);

}  // namespace
}  // namespace hmc::test
