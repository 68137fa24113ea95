// RemoteRegion::fetchAdd() and compareSwap(), over each path.
// Runs with HMC_MEMORY_PLUGIN providing a fake accelerator.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <atomic>
#include <thread>

#include "base/codec.h"
#include "memory/backends.h"
#include "unit/node/path_pair.h"

namespace hmc {
namespace {

using testing::HasSubstr;

constexpr size_t kWords = 1024;
constexpr size_t kWordsSize = 8 * kWords;

AtomicChange add(uint64_t offset, uint64_t value) {
  return {AtomicChange::Kind::add, offset, value};
}
AtomicChange swap(uint64_t offset, uint64_t expected, uint64_t desired) {
  return {AtomicChange::Kind::compareSwap, offset, desired, expected};
}

class Atomic : public testing::TestWithParam<PathCase> {
 protected:
  std::shared_ptr<LocalMemory> allocate(const std::string& name,
                                        Access access = Access::readWrite) const {
    if (!GetParam().allocated) {
      return must(nodes_.a->registerMemory(name, {words_, kWordsSize, Device{}}, access,
                                           /*owned=*/false));
    }
    const Region region = must(hostBackend().allocate(0, kWordsSize));
    return must(nodes_.a->registerMemory(name, region, access, /*owned=*/true));
  }
  static Status outcome(const RemoteMapping& remote, const AtomicChange& change) {
    return remote.changeAtomically(change, kDefaultTimeout).status();
  }

  // A page at least, which one test protects.
  alignas(4096) mutable uint64_t words_[kWords] = {};
  PathPair nodes_{GetParam()};
};

INSTANTIATE_TEST_SUITE_P(Node, Atomic, testing::ValuesIn(everyPath()),
                         [](const auto& path) { return path.param.name; });

TEST_P(Atomic, answersWhatWasThereBefore) {
  const auto target = allocate("words");
  const auto* words = reinterpret_cast<const uint64_t*>(target->host());
  const auto remote = nodes_.open("words");
  EXPECT_THAT(remote->path(), HasSubstr(GetParam().path));
  EXPECT_EQ(must(remote->changeAtomically(add(8, 5), kDefaultTimeout)), 0u);
  EXPECT_EQ(must(remote->changeAtomically(add(8, UINT64_MAX), kDefaultTimeout)), 5u);
  EXPECT_EQ(words[1], 4u) << "modulo 2^64";
  EXPECT_EQ(must(remote->changeAtomically(swap(8, 5, 77), kDefaultTimeout)), 4u);
  EXPECT_EQ(words[1], 4u) << "another number was expected";
  EXPECT_EQ(must(remote->changeAtomically(swap(8, 4, 77), kDefaultTimeout)), 4u);
  EXPECT_EQ(words[1], 77u);
  EXPECT_EQ(must(remote->changeAtomically(add(kWordsSize - 8, 1), kDefaultTimeout)), 0u);
  EXPECT_EQ(words[kWords - 1], 1u);
  EXPECT_EQ(words[0] + words[2], 0u) << "nothing beside them";
}

TEST_P(Atomic, refusesWhatDoesNotFit) {
  const auto target = allocate("words");
  const auto remote = nodes_.open("words");
  for (const uint64_t offset : {uint64_t{kWordsSize} - 7, uint64_t{kWordsSize}, UINT64_MAX - 3}) {
    const Status refused = outcome(*remote, add(offset, 1));
    EXPECT_EQ(refused.code(), Code::outOfRange) << refused.toString();
    EXPECT_THAT(refused.message(),
                HasSubstr("fetch-add of 8 bytes at remote offset " + std::to_string(offset)));
  }
  const Status odd = outcome(*remote, swap(12, 0, 1));
  EXPECT_EQ(odd.code(), Code::invalidArgument);
  EXPECT_THAT(odd.message(), HasSubstr("compare-swap at remote offset 12: the 8 bytes have to"));
  EXPECT_EQ(std::string(target->host(), kWordsSize), std::string(kWordsSize, '\0'));
}

TEST_P(Atomic, doesNotChangeWhatMayOnlyBeRead) {
  const auto target = allocate("shown", Access::read);
  const auto remote = nodes_.open("shown");
  EXPECT_EQ(outcome(*remote, add(0, 1)).code(), Code::permissionDenied);
  EXPECT_EQ(target->host()[0], 0);
}

TEST_P(Atomic, endsWhenTheMemoryIsTakenBack) {
  const auto target = allocate("words");
  const auto remote = nodes_.open("words");
  EXPECT_TRUE(outcome(*remote, add(0, 1)).ok());
  ASSERT_TRUE(nodes_.a->revoke(target->exported(), std::chrono::seconds(30)).ok());
  EXPECT_EQ(outcome(*remote, add(0, 1)).code(), Code::notFound);
  EXPECT_EQ(target->host()[0], 1);
}

TEST_P(Atomic, endsWithThePeer) {
  const auto target = allocate("words");
  const auto remote = nodes_.open("words");
  nodes_.a->close();
  // Mapped memory can be changed until we have heard of it.
  const Deadline deadline = std::chrono::seconds(30);
  Status last;
  while ((last = outcome(*remote, add(0, 1))).ok() && !deadline.passed()) {
  }
  EXPECT_EQ(last.code(), Code::disconnected);
}

TEST_P(Atomic, losesNoneOfManyThreads) {
  constexpr int kThreads = 4;
  constexpr int kEach = 500;
  const auto target = allocate("words");
  std::atomic_ref<uint64_t> count(*reinterpret_cast<uint64_t*>(target->host()));
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < kThreads; ++i) {
      threads.emplace_back([remote = nodes_.open("words")] {
        for (int k = 0; k < kEach; ++k) EXPECT_TRUE(outcome(*remote, add(0, 1)).ok());
      });
    }
    for (int k = 0; k < kEach; ++k) ++count;
  }
  EXPECT_EQ(count.load(), static_cast<uint64_t>((kThreads + 1) * kEach));
}

// A user's mistake must not end the owner's process.
TEST_P(Atomic, failsAloneWhereTheOwnersMemoryIsProtected) {
  if (GetParam().allocated) GTEST_SKIP() << "the peer writes into pages of its own mapping there";
  const auto target = allocate("words");
  const auto remote = nodes_.open("words");
  ASSERT_EQ(mprotect(words_, 4096, PROT_READ), 0);
  const Status refused = outcome(*remote, add(0, 1));
  ASSERT_EQ(mprotect(words_, 4096, PROT_READ | PROT_WRITE), 0);
  EXPECT_EQ(refused.code(), Code::failed) << refused.toString();
  EXPECT_THAT(refused.message(), HasSubstr("protected after it was registered"));
  EXPECT_TRUE(outcome(*remote, add(0, 1)).ok()) << "the connection goes on";
}

TEST(AtomicAcross, pathsToOneRegionLoseNothing) {
  NodePair nodes({"ipc", "tcp"});
  Node far = must(Node::create(named("far", {"tcp"})));
  const Peer fromFar = must(far.connect(nodes.listener));
  const LocalRegion target = must(nodes.a.allocate("words", 64));
  const RemoteRegion mapped = must(nodes.toA.open("words"));
  const RemoteRegion asked = must(fromFar.open("words"));
  ASSERT_TRUE(mapped.mapped());
  ASSERT_FALSE(asked.mapped());
  constexpr uint64_t kEach = 2000;
  {
    const std::jthread one([&] {
      for (uint64_t i = 0; i < kEach; ++i) EXPECT_TRUE(mapped.fetchAdd(0, 1).ok());
    });
    // The same by what everybody has: another's change in between is seen and tried again.
    for (uint64_t i = 0; i < kEach; ++i) {
      uint64_t seen = 0;
      for (;;) {
        const uint64_t there = must(asked.compareSwap(0, seen, seen + 1));
        if (there == seen) break;
        seen = there;
      }
    }
  }
  EXPECT_EQ(*static_cast<const uint64_t*>(target.data()), 2 * kEach);
}

TEST(AtomicAcross, memoryOfADeviceIsRefused) {
  NodePair nodes({"tcp"});
  const LocalRegion target = must(nodes.a.allocate("words", 4096, kGpu));
  const Status refused = must(nodes.toA.open("words")).fetchAdd(0, 1).status();
  EXPECT_EQ(refused.code(), Code::unsupported);
  EXPECT_THAT(refused.message(), HasSubstr("memory of cuda:0: only memory of the host"));
}

TEST(AtomicAcross, aGrantedRangeIsAllThatChanges) {
  NodePair nodes({"tcp"});
  const LocalRegion target = must(nodes.a.allocate("words", 64));
  GrantOptions part;
  part.offset = 16;
  part.size = 16;
  const RemoteRegion remote = must(nodes.toA.open(must(target.grant(part))));
  EXPECT_TRUE(remote.fetchAdd(8, 3).ok());
  EXPECT_EQ(static_cast<const uint64_t*>(target.data())[3], 3u);
  EXPECT_EQ(remote.fetchAdd(16, 3).status().code(), Code::outOfRange);
}

// What the target answers whose peer's own checks say yes to everything.
TEST(AtomicRequests, areCheckedAtTheOwner) {
  uint64_t words[2] = {};
  const Region memory{words, sizeof words, Device{}};
  auto serve = [&](const AtomicChange& change, Access access = Access::readWrite) {
    return AtomicRequest{"words", 1, change}.serve(memory, access).status().code();
  };
  EXPECT_EQ(serve(add(8, 1)), Code::ok);
  EXPECT_EQ(serve(add(9, 1)), Code::outOfRange);
  EXPECT_EQ(serve(add(1, 1)), Code::invalidArgument);
  EXPECT_EQ(serve(add(UINT64_MAX - 6, 1)), Code::outOfRange);
  EXPECT_EQ(serve(add(0, 1), Access::read), Code::permissionDenied);
  EXPECT_EQ(words[0], 0u);
  EXPECT_EQ(words[1], 1u);
  const std::string unknown = Writer().string("words").u64(1).u8(2).u64(0).u64(0).u64(0).take();
  EXPECT_EQ(AtomicRequest::decode(unknown).status().code(), Code::invalidArgument);
}

}  // namespace
}  // namespace hmc
