#include <atomic>
#include <deque>
#include <mutex>
#include <thread>

#include "unit/transport/ipc_fixture.h"

// Many threads on one link, and its end under them.
namespace hmc::ipc {
namespace {

constexpr size_t kThreads = 4;
constexpr size_t kShare = 4096;

class IpcThreads : public testing::TestWithParam<bool> {
 protected:
  IpcOptions options() const { return GetParam() ? kRingOnly : IpcOptions{}; }
};

std::string pathName(const testing::TestParamInfo<bool>& info) {
  return info.param ? "ring" : "direct";
}

// Makes one link after the other between two transports, to the same memory.
struct LinkMaker {
  explicit LinkMaker(IpcOptions options) : pair(options, options) {}

  std::pair<std::unique_ptr<Link>, std::unique_ptr<RemoteMemory>> make() {
    auto link = must(pair.origin->openLink(test::linkOptions(true)));
    back = must(pair.target->openLink(test::linkOptions(false)));
    EXPECT_TRUE(link->connect(back->address()).ok());
    auto remote = must(link->importKey(registration->key(), kPatience, nullptr));
    return {std::move(link), std::move(remote)};
  }
  // Of the first share; without a completion.
  Op put(const RemoteMemory& remote) {
    return {OpKind::put, text.data(), local.get(), &remote, 0, kShare, nullptr};
  }

  IpcPair pair;
  Allocation memory{kThreads * kShare};
  std::unique_ptr<Registration> registration =
      must(pair.target->registerRegion(memory.region, Access::readWrite));
  std::vector<char> text = std::vector<char>(kShare, 'x');
  std::unique_ptr<Registration> local =
      must(pair.origin->registerRegion(hostRegion(text.data(), text.size()), Access::readWrite));
  std::unique_ptr<Link> back;
};

TEST_P(IpcThreads, hammerOneLink) {
  IpcPair pair(options(), options());
  Allocation memory(kThreads * kShare);
  auto registration = must(pair.target->registerRegion(memory.region, Access::readWrite));
  auto remote = pair.import(*registration);
  std::mutex progressing;  // one thread calls progress() at a time
  std::vector<std::jthread> threads;
  for (size_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      uint64_t value = 0;
      auto local =
          must(pair.origin->registerRegion(hostRegion(&value, sizeof(value)), Access::readWrite));
      for (uint64_t round = 1; round <= 500; ++round) {
        value = round;
        Completion completion(1);
        uint64_t offset = t * kShare + round * 8 % kShare;
        Op op{OpKind::put, &value, local.get(), remote.get(), offset, 8, &completion};
        bool posted = pair.link->post({&op, 1}) == 1;
        while (!posted || !completion.done()) {
          std::lock_guard lock(progressing);
          pair.origin->progress(std::chrono::milliseconds(1));
          posted = posted || pair.link->post({&op, 1}) == 1;
        }
        ASSERT_TRUE(completion.status().ok()) << completion.status().toString();
        value = 0;
        Completion read(1);
        op.kind = OpKind::get;
        op.completion = &read;
        posted = pair.link->post({&op, 1}) == 1;
        while (!posted || !read.done()) {
          std::lock_guard lock(progressing);
          pair.origin->progress(std::chrono::milliseconds(1));
          posted = posted || pair.link->post({&op, 1}) == 1;
        }
        ASSERT_EQ(value, round);
      }
    });
  }
}

// The owner of a link may destroy it as soon as every completion is done, although the threads that
// posted are perhaps not quite out of post() yet.
TEST_P(IpcThreads, destroyTheLinkOnceEverythingIsDone) {
  LinkMaker maker(options());
  for (int round = 0; round < 20; ++round) {
    auto [link, remote] = maker.make();
    const Op put = maker.put(*remote);
    Completion completion(kThreads * 50);
    std::atomic<size_t> accepted{0};
    std::vector<std::jthread> threads;
    for (size_t t = 0; t < kThreads; ++t) {
      // A copy of the pointer: `link` itself may be gone when post() comes back.
      threads.emplace_back([&, t, op = put, raw = link.get()]() mutable {
        op.remoteOffset = t * kShare;
        op.completion = &completion;
        accepted += raw->post(std::vector<Op>(50, op));
      });
    }
    Deadline deadline(kPatience);
    while (!completion.done() && !deadline.passed()) {
      maker.pair.origin->progress(std::chrono::milliseconds(1));
    }
    ASSERT_TRUE(completion.done());
    remote.reset();
    link.reset();
    threads.clear();
    EXPECT_EQ(accepted, kThreads * 50);
  }
}

TEST_P(IpcThreads, closeWhileOthersPost) {
  LinkMaker maker(options());
  for (int round = 0; round < 20; ++round) {
    auto [link, remote] = maker.make();
    const Op put = maker.put(*remote);
    std::atomic<size_t> ended{0};
    std::atomic<uint32_t> started{0};
    std::deque<Completion> completions;
    // One count is the thread's own: others may only join while it cannot reach zero.
    for (size_t t = 0; t < kThreads; ++t) completions.emplace_back(1);
    std::vector<std::jthread> threads;
    for (size_t t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t, op = put, raw = link.get()]() mutable {
        Completion& completion = completions[t];
        op.remoteOffset = t * kShare;
        op.completion = &completion;
        for (;;) {
          completion.expect(1);
          while (raw->post({&op, 1}) == 0) std::this_thread::yield();
          started.fetch_add(1);
          started.notify_all();
          if (completion.failed()) break;
          while (completion.pending() > 20) std::this_thread::yield();
        }
        completion.finish();
        ++ended;
      });
    }
    started.wait(0);
    std::jthread progress([&](const std::stop_token& stop) {
      while (!stop.stop_requested()) maker.pair.origin->progress(std::chrono::milliseconds(1));
    });
    link->close(Status(Code::cancelled, "the test closes it"));
    threads.clear();
    EXPECT_EQ(ended, kThreads);
    for (const Completion& completion : completions) {
      EXPECT_EQ(completion.status().code(), Code::cancelled);
    }
    progress = {};
    remote.reset();
    link.reset();
  }
}

INSTANTIATE_TEST_SUITE_P(All, IpcThreads, testing::Bool(), pathName);

}  // namespace
}  // namespace hmc::ipc
