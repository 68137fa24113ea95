#include <atomic>
#include <mutex>
#include <thread>

#include "contract/transport_contract.h"
#include "memory/backends.h"

// Points 1 to 4 of the contract: what moves, and that it is there when we are told so.
namespace hmc::contract {

TEST_P(TransportContract, putAndGetMoveEverySizeToOddOffsets) {
  constexpr size_t kRoom = (size_t{9} << 20) + 64;
  auto [local, target, ends, remote] = start(kRoom);

  uint64_t seed = 0;
  for (size_t size : {1u, 2u, 3u, 7u, 8u, 63u, 64u, 65u, 511u, 4095u, 4096u, 4097u, 65535u, 65536u,
                      (1u << 20) - 1, (1u << 20) + 1, (3u << 20) + 5, (8u << 20) + 3}) {
    const size_t offset = 1 + size % 13;
    ++seed;
    fill(local.region().slice(5, size), seed);
    Status put = transfer(*a_, *ends.a, OpKind::put, local, 5, *remote, offset, size);
    ASSERT_TRUE(put.ok()) << put.toString();
    ASSERT_EQ(differs(target.region().slice(offset, size), seed), "") << size << " bytes put";

    fill(target.region().slice(offset, size), seed + 1000);
    Status get = transfer(*a_, *ends.a, OpKind::get, local, 11, *remote, offset, size);
    ASSERT_TRUE(get.ok()) << get.toString();
    ASSERT_EQ(differs(local.region().slice(11, size), seed + 1000), "") << size << " bytes got";
  }
}

TEST_P(TransportContract, aPutTouchesNothingAroundIt) {
  auto [local, target, ends, remote] = start(8192);
  for (size_t size : {1u, 9u, 100u, 4097u}) {
    fill(target.region(), 1);
    fill(local.region().slice(0, size), 2);
    ASSERT_TRUE(transfer(*a_, *ends.a, OpKind::put, local, 0, *remote, 33, size).ok());
    EXPECT_EQ(differs(target.region().slice(0, 33), 1), "");
    EXPECT_EQ(differs(target.region().slice(33, size), 2), "");
    EXPECT_EQ(differs(target.region().slice(33 + size, 8192 - 33 - size), 1, 33 + size), "");
  }
}

TEST_P(TransportContract, aFinishedPutIsInTheTargetsMemory) {
  auto [local, target, ends, remote] = start(4096);
  for (uint64_t round = 0; round < 2000; ++round) {
    const size_t size = 1 + round * 37 % 700;
    fill(local.region().slice(0, size), round);
    Completion completion(1);
    Op op = makeOp(OpKind::put, local, 0, *remote, round % 50, size, completion);
    ASSERT_TRUE(postAll(*a_, *ends.a, {&op, 1}));
    ASSERT_TRUE(drive(*a_, completion));
    ASSERT_TRUE(completion.status().ok()) << completion.status().toString();
    ASSERT_EQ(differs(target.region().slice(round % 50, size), round), "") << "round " << round;
  }
}

TEST_P(TransportContract, aFinishedGetIsInOurMemory) {
  auto [local, target, ends, remote] = start(4096);
  for (uint64_t round = 0; round < 2000; ++round) {
    const size_t size = 1 + round * 37 % 700;
    fill(target.region().slice(3, size), round);
    Status status = transfer(*a_, *ends.a, OpKind::get, local, round % 50, *remote, 3, size);
    ASSERT_TRUE(status.ok()) << status.toString();
    ASSERT_EQ(differs(local.region().slice(round % 50, size), round), "") << "round " << round;
  }
}

TEST_P(TransportContract, thousandsOfOperationsInOnePostAllFinish) {
  constexpr size_t kOps = 5000;
  constexpr size_t kSize = 24;
  auto [local, target, ends, remote] = start(kOps * kSize);
  Buffer back = localBuffer(*a_, kOps * kSize);
  fill(local.region(), 7);

  for (OpKind kind : {OpKind::put, OpKind::get}) {
    Completion completion(kOps);
    std::vector<Op> ops;
    for (size_t i = 0; i < kOps; ++i) {
      const Buffer& ours = kind == OpKind::put ? local : back;
      ops.push_back(makeOp(kind, ours, i * kSize, *remote, i * kSize, kSize, completion));
    }
    ASSERT_TRUE(postAll(*a_, *ends.a, ops));
    ASSERT_TRUE(drive(*a_, completion));
    ASSERT_TRUE(completion.status().ok()) << completion.status().toString();
  }
  EXPECT_EQ(differs(target.region(), 7), "");
  EXPECT_EQ(differs(back.region(), 7), "");
}

TEST_P(TransportContract, putsAndGetsOfOnePostMayBeMixed) {
  constexpr size_t kPiece = 40000;
  constexpr size_t kPieces = 100;
  auto [local, target, ends, remote] = start(kPieces * kPiece);
  for (size_t i = 0; i < kPieces; ++i) {
    const Buffer& source = i % 2 == 0 ? local : target;
    fill(source.region().slice(i * kPiece, kPiece), i);
  }
  Completion completion(kPieces);
  std::vector<Op> ops;
  for (size_t i = 0; i < kPieces; ++i) {
    ops.push_back(makeOp(i % 2 == 0 ? OpKind::put : OpKind::get, local, i * kPiece, *remote,
                         i * kPiece, kPiece, completion));
  }
  ASSERT_TRUE(postAll(*a_, *ends.a, ops));
  ASSERT_TRUE(drive(*a_, completion));
  ASSERT_TRUE(completion.status().ok()) << completion.status().toString();
  for (size_t i = 0; i < kPieces; ++i) {
    EXPECT_EQ(differs(local.region().slice(i * kPiece, kPiece), i), "") << i;
    EXPECT_EQ(differs(target.region().slice(i * kPiece, kPiece), i), "") << i;
  }
}

TEST_P(TransportContract, severalThreadsPostOnOneLink) {
  constexpr size_t kThreads = 4;
  constexpr size_t kShare = 300000;
  Buffer local = localBuffer(*a_, kThreads * kShare);
  Buffer target = targetBuffer(*b_, kThreads * kShare);
  Ends ends = connect();
  auto remote = import(*ends.a, target);
  fill(local.region(), 3);

  std::mutex progressing;  // one thread calls progress() at a time
  std::atomic<size_t> good{0};
  auto work = [&](size_t share) {
    std::vector<Op> ops;
    Completion completion(0);
    for (size_t at = 0; at < kShare; at += 1000) {
      ops.push_back(makeOp(OpKind::put, local, share * kShare + at, *remote, share * kShare + at,
                           1000, completion));
    }
    completion.expect(static_cast<uint32_t>(ops.size()));
    std::span<const Op> rest(ops);
    while (!rest.empty() || !completion.done()) {
      if (!rest.empty()) rest = rest.subspan(ends.a->post(rest));
      std::lock_guard lock(progressing);
      a_->progress(std::chrono::milliseconds(1));
    }
    if (completion.status().ok()) ++good;
  };
  std::vector<std::jthread> threads;
  for (size_t i = 0; i < kThreads; ++i) threads.emplace_back(work, i);
  threads.clear();
  EXPECT_EQ(good, kThreads);
  EXPECT_EQ(differs(target.region(), 3), "");
}

TEST_P(TransportContract, twoLinksCarryTrafficAtOnce) {
  constexpr size_t kSize = 1500000;
  Buffer local = localBuffer(*a_, 2 * kSize);
  Buffer target = targetBuffer(*b_, 2 * kSize);
  Ends first = connect();
  Ends second = connect();
  auto remoteFirst = import(*first.a, target);
  auto remoteSecond = import(*second.a, target);
  fill(local.region(), 9);

  constexpr size_t kPiece = 10000;
  Completion completion(2 * kSize / kPiece);
  for (size_t at = 0; at < kSize; at += kPiece) {
    Op one = makeOp(OpKind::put, local, at, *remoteFirst, at, kPiece, completion);
    Op two = makeOp(OpKind::put, local, kSize + at, *remoteSecond, kSize + at, kPiece, completion);
    ASSERT_TRUE(postAll(*a_, *first.a, {&one, 1}));
    ASSERT_TRUE(postAll(*a_, *second.a, {&two, 1}));
  }
  ASSERT_TRUE(drive(*a_, completion));
  ASSERT_TRUE(completion.status().ok()) << completion.status().toString();
  EXPECT_EQ(differs(target.region(), 9), "");
}

TEST_P(TransportContract, bothSidesWorkAtOnce) {
  constexpr size_t kSize = 2000000;
  Buffer source[2] = {localBuffer(*a_, kSize), localBuffer(*b_, kSize)};
  Buffer sink[2] = {targetBuffer(*a_, kSize), targetBuffer(*b_, kSize)};
  Ends ends = connect();
  auto remoteOfA = import(*ends.b, sink[0]);
  auto remoteOfB = import(*ends.a, sink[1]);
  fill(source[0].region(), 1);
  fill(source[1].region(), 2);

  Status results[2];
  {
    std::jthread one([&] {
      for (int i = 0; i < 5 && results[0].ok(); ++i) {
        results[0] = transfer(*a_, *ends.a, OpKind::put, source[0], 0, *remoteOfB, 0, kSize);
      }
    });
    std::jthread two([&] {
      for (int i = 0; i < 5 && results[1].ok(); ++i) {
        results[1] = transfer(*b_, *ends.b, OpKind::put, source[1], 0, *remoteOfA, 0, kSize);
      }
    });
  }
  EXPECT_TRUE(results[0].ok()) << results[0].toString();
  EXPECT_TRUE(results[1].ok()) << results[1].toString();
  EXPECT_EQ(differs(sink[1].region(), 1), "");
  EXPECT_EQ(differs(sink[0].region(), 2), "");
}

TEST_P(TransportContract, progressWithNothingToDoReturnsAtItsDeadline) {
  Ends ends = connect();
  EXPECT_FALSE(a_->progress(std::chrono::milliseconds(5)));
  EXPECT_FALSE(b_->progress(Deadline::now()));
  EXPECT_EQ(ends.a->post({}), 0u);
}

TEST_P(TransportContract, wakeEndsTheProgressThatIsUnderWayOrElseTheNext) {
  Ends ends = connect();
  Buffer local = localBuffer(*a_, 4096);
  Buffer target = targetBuffer(*b_, 4096);
  auto remote = import(*ends.a, target);
  ASSERT_TRUE(transfer(*a_, *ends.a, OpKind::put, local, 0, *remote, 0, 4096).ok());
  const Deadline late(kPatience);
  a_->wake();
  a_->progress(late);
  EXPECT_FALSE(late.passed());
  std::atomic<bool> back{false};
  std::thread poller([&] {
    a_->progress(late);
    back = true;
  });
  while (!back && !late.passed()) {
    a_->wake();
    std::this_thread::yield();
  }
  poller.join();
  EXPECT_FALSE(late.passed());
}

// A place is a promise: the memory lies there, and the place is free again afterwards.
TEST_P(TransportContract, importsAtAReservedPlaceWhatItMaps) {
  constexpr size_t kBytes = size_t{64} << 10;
  Buffer target = targetBuffer(*b_, kBytes);
  Buffer local = localBuffer(*a_, kBytes);
  Ends ends = connect();
  Backend& backend = **findBackend(target.region().device.kind);
  auto reservation = backend.reserve(size_t{4} << 20);
  ASSERT_TRUE(reservation.ok()) << reservation.status().toString();
  char* const place = (*reservation)->region.at((*reservation)->alignment);
  const bool maps = import(*ends.a, target)->path() == "mapped";
  for (uint64_t seed : {1, 2}) {
    auto remote = ends.a->importKey(target.key(), kPatience, place);
    if (!maps) {
      EXPECT_EQ(remote.status().code(), Code::unsupported) << remote.status().toString();
      continue;
    }
    ASSERT_TRUE(remote.ok()) << remote.status().toString();
    if (target.region().device.isHost()) {
      EXPECT_EQ((*remote)->mapped.data, place);
    }
    EXPECT_FALSE(ends.a->importKey(target.key(), kPatience, place).ok()) << "the place is taken";
    fill(local.region(), seed);
    Status put = transfer(*a_, *ends.a, OpKind::put, local, 0, **remote, 0, kBytes);
    EXPECT_TRUE(put.ok()) << put.toString();
    EXPECT_EQ(differs(target.region(), seed), "");
    if (target.region().device.isHost()) {
      EXPECT_EQ(differs({place, kBytes, Device{}}, seed), "");
    }
  }
}

}  // namespace hmc::contract
