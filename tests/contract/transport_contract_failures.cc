#include <atomic>
#include <deque>
#include <thread>

#include "contract/transport_contract.h"
#include "fakes/link_options.h"

// Points 5 and 7: what is refused, how, and that the rest goes on.
namespace hmc::contract {

TEST_P(TransportContract, aDamagedAddressIsAStatus) {
  Ends ends = connect();
  const std::string good = ends.b->address();
  const LinkOptions options = test::linkOptions(true);
  for (size_t size = 0; size < good.size(); ++size) {
    auto link = a_->openLink(options);
    ASSERT_TRUE(link.ok()) << link.status().toString();
    EXPECT_FALSE((*link)->connect(good.substr(0, size)).ok()) << "cut to " << size << " bytes";
  }
  auto link = a_->openLink(options);
  ASSERT_TRUE(link.ok()) << link.status().toString();
  EXPECT_FALSE((*link)->connect(std::string(300, '\xff')).ok());
  EXPECT_FALSE((*link)->connect(good + "x").ok());
}

TEST_P(TransportContract, aDamagedKeyIsAStatus) {
  Buffer target = targetBuffer(*b_, 4096);
  Ends ends = connect();
  const std::string good = target.key();
  for (size_t size = 0; size < good.size(); ++size) {
    EXPECT_FALSE(ends.a->importKey(good.substr(0, size), kPatience, nullptr).ok())
        << "cut to " << size << " bytes";
  }
  EXPECT_FALSE(ends.a->importKey(std::string(300, '\xff'), kPatience, nullptr).ok());
  EXPECT_FALSE(ends.a->importKey(good + "x", kPatience, nullptr).ok());
}

TEST_P(TransportContract, anImportedKeyTellsSizeAndAccess) {
  Buffer writable = targetBuffer(*b_, 5000);
  Buffer readable = targetBuffer(*b_, 7000, Access::read);
  Ends ends = connect();
  EXPECT_EQ(import(*ends.a, writable)->size, 5000u);
  EXPECT_EQ(import(*ends.a, writable)->access, Access::readWrite);
  EXPECT_EQ(import(*ends.a, readable)->size, 7000u);
  EXPECT_EQ(import(*ends.a, readable)->access, Access::read);
}

TEST_P(TransportContract, readOnlyMemoryRefusesPutAndServesGet) {
  Buffer local = localBuffer(*a_, 4096);
  Buffer target = targetBuffer(*b_, 4096, Access::read);
  Buffer open = targetBuffer(*b_, 4096);
  Ends ends = connect();
  auto remote = import(*ends.a, target);
  auto remoteOpen = import(*ends.a, open);
  fill(local.region(), 1);
  fill(target.region(), 2);

  // One refused operation between two good ones: failure is per operation.
  Completion before(1), refused(1), after(1);
  Op ops[] = {makeOp(OpKind::put, local, 0, *remoteOpen, 0, 100, before),
              makeOp(OpKind::put, local, 0, *remote, 0, 4096, refused),
              makeOp(OpKind::put, local, 100, *remoteOpen, 100, 100, after)};
  ASSERT_TRUE(postAll(*a_, *ends.a, ops));
  ASSERT_TRUE(drive(*a_, before) && drive(*a_, refused) && drive(*a_, after));
  EXPECT_TRUE(before.status().ok()) << before.status().toString();
  EXPECT_EQ(refused.status().code(), Code::permissionDenied) << refused.status().toString();
  EXPECT_TRUE(after.status().ok()) << after.status().toString();
  EXPECT_EQ(differs(target.region(), 2), "");
  EXPECT_EQ(differs(open.region().slice(0, 200), 1), "");

  Status get = transfer(*a_, *ends.a, OpKind::get, local, 0, *remote, 0, 4096);
  EXPECT_TRUE(get.ok()) << get.toString();
  EXPECT_EQ(differs(local.region(), 2), "");
}

TEST_P(TransportContract, anOperationBeyondTheEndFailsAndTouchesNothing) {
  auto [local, target, ends, remote] = start(4096);
  fill(local.region(), 1);
  fill(target.region(), 2);
  for (OpKind kind : {OpKind::put, OpKind::get}) {
    for (auto [offset, size] : {std::pair<uint64_t, size_t>{4096, 1},
                                {4095, 2},
                                {1, 4096},
                                {~uint64_t{7}, 16},
                                {~uint64_t{0}, 1}}) {
      Status status = transfer(*a_, *ends.a, kind, local, 0, *remote, offset, size);
      EXPECT_EQ(status.code(), Code::outOfRange) << offset << " " << status.toString();
    }
  }
  EXPECT_EQ(differs(target.region(), 2), "");
  EXPECT_EQ(differs(local.region(), 1), "");
  Status status = transfer(*a_, *ends.a, OpKind::put, local, 0, *remote, 0, 4096);
  EXPECT_TRUE(status.ok()) << "the link does not go on: " << status.toString();
}

TEST_P(TransportContract, memoryThatIsNoLongerRegisteredIsNotReached) {
  auto [local, gone, ends, remoteGone] = start(4096);
  Buffer kept = targetBuffer(*b_, 4096);
  auto remoteKept = import(*ends.a, kept);
  fill(local.region(), 1);
  ASSERT_TRUE(transfer(*a_, *ends.a, OpKind::put, local, 0, *remoteGone, 0, 4096).ok());
  gone.registration.reset();
  fill(gone.region(), 2);
  Status put = transfer(*a_, *ends.a, OpKind::put, local, 0, *remoteGone, 0, 4096);
  Status get = transfer(*a_, *ends.a, OpKind::get, local, 0, *remoteGone, 0, 4096);
  if (candidate().unregisterStops) {
    EXPECT_FALSE(put.ok());
    EXPECT_FALSE(get.ok());
    EXPECT_EQ(differs(gone.region(), 2), "");
  }
  fill(local.region(), 3);
  Status status = transfer(*a_, *ends.a, OpKind::put, local, 0, *remoteKept, 0, 4096);
  EXPECT_TRUE(status.ok()) << "the link does not go on: " << status.toString();
  EXPECT_EQ(differs(kept.region(), 3), "");
}

// A refusal may break what carries the others as well (a queue pair, an endpoint): they arrive
// nevertheless, each once.
TEST_P(TransportContract, aRefusedOperationTakesNoneOfItsNeighboursAlong) {
  if (!candidate().unregisterStops) GTEST_SKIP() << "no software at the target can stop it";
  constexpr size_t kPiece = 9000;
  constexpr size_t kPieces = 90;
  auto [local, gone, ends, remoteGone] = start(kPieces * kPiece);
  Buffer kept = targetBuffer(*b_, kPieces * kPiece);
  auto remoteKept = import(*ends.a, kept);
  gone.registration.reset();
  for (size_t i = 0; i < kPieces; ++i) {
    const Buffer& source = i % 3 == 0 ? local : kept;
    fill(source.region().slice(i * kPiece, kPiece), i);
  }
  std::deque<Completion> completions;
  std::vector<Op> ops;
  for (size_t i = 0; i < kPieces; ++i) {
    completions.emplace_back(1);
    // Every third is a put that arrives, then comes a get, then a put that is refused.
    const RemoteMemory& remote = i % 3 == 2 ? *remoteGone : *remoteKept;
    ops.push_back(makeOp(i % 3 == 1 ? OpKind::get : OpKind::put, local, i * kPiece, remote,
                         i * kPiece, kPiece, completions.back()));
  }
  ASSERT_TRUE(postAll(*a_, *ends.a, ops));
  for (size_t i = 0; i < kPieces; ++i) {
    ASSERT_TRUE(drive(*a_, completions[i])) << i;
    EXPECT_EQ(completions[i].pending(), 0u) << i;
    EXPECT_EQ(completions[i].status().ok(), i % 3 != 2)
        << i << ": " << completions[i].status().toString();
    if (i % 3 == 2) continue;
    EXPECT_EQ(differs(kept.region().slice(i * kPiece, kPiece), i), "") << i;
    EXPECT_EQ(differs(local.region().slice(i * kPiece, kPiece), i), "") << i;
  }
}

TEST_P(TransportContract, unregisteringUnderTrafficFencesTheMemory) {
  if (!candidate().unregisterStops) GTEST_SKIP() << "no software at the target can stop it";
  constexpr size_t kSize = 200000;
  Buffer local = localBuffer(*a_, kSize);
  Ends ends = connect();
  fill(local.region(), 1);
  for (int round = 0; round < 20; ++round) {
    Buffer target = targetBuffer(*b_, kSize);
    auto remote = import(*ends.a, target);
    std::atomic<int> finished{0};
    std::jthread traffic([&](std::stop_token stop) {
      while (!stop.stop_requested()) {
        // Fails from some moment on, and must not break the link.
        (void)transfer(*a_, *ends.a, OpKind::put, local, 0, *remote, 0, kSize);
        ++finished;
        finished.notify_all();
      }
    });
    finished.wait(0);
    target.registration.reset();
    fill(target.region(), 2);
    const int then = finished;
    for (int seen = then; seen < then + 3; seen = finished) finished.wait(seen);
    traffic.request_stop();
    traffic.join();
    ASSERT_EQ(differs(target.region(), 2), "") << "round " << round;
  }
  Buffer target = targetBuffer(*b_, kSize);
  auto remote = import(*ends.a, target);
  Status status = transfer(*a_, *ends.a, OpKind::put, local, 0, *remote, 0, kSize);
  EXPECT_TRUE(status.ok()) << status.toString();
}

}  // namespace hmc::contract
