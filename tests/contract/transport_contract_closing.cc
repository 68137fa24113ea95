#include <deque>
#include <thread>

#include "contract/transport_contract.h"
#include "fakes/unseen_order.h"

// Point 6: a closed link is fenced, and everything pending ends exactly once.
namespace hmc::contract {

namespace {

constexpr size_t kPiece = 100000;
constexpr size_t kPieces = 60;

// Operations with a completion each, so that one that ends twice shows.
struct Flood {
  Flood(OpKind kind, const Buffer& local, const RemoteMemory& remote) {
    for (size_t i = 0; i < kPieces; ++i) {
      completions.emplace_back(1);
      ops.push_back(
          makeOp(kind, local, i * kPiece, remote, i * kPiece, kPiece, completions.back()));
    }
  }
  // Posts what the link takes now.
  size_t post(Link& link) { return accepted = link.post(ops); }
  bool done() const {
    for (size_t i = 0; i < accepted; ++i) {
      if (!completions[i].done()) return false;
    }
    return true;
  }
  bool drive(Transport& transport, Deadline deadline = kPatience) const {
    while (!done()) {
      if (deadline.passed()) return false;
      transport.progress(earlier(deadline, std::chrono::milliseconds(100)));
    }
    return true;
  }
  // Each accepted operation ended once, the others not at all.
  void expectEachEndedOnce() const {
    for (size_t i = 0; i < kPieces; ++i) {
      EXPECT_EQ(completions[i].pending(), i < accepted ? 0u : 1u) << "operation " << i;
    }
  }
  size_t failures() const {
    size_t count = 0;
    for (size_t i = 0; i < accepted; ++i) count += completions[i].status().ok() ? 0 : 1;
    return count;
  }

  std::deque<Completion> completions;
  std::vector<Op> ops;
  size_t accepted = 0;
};

const Status kWhy(Code::cancelled, "the test closes this link");

// Reuses memory after a fence, and watches it for a moment: a byte that still moves shows. What
// ends the peer's part may be that it hangs up, an order that ThreadSanitizer does not see.
std::string changesWhenReused(const Region& memory, Transport& origin) {
  {
    const test::Unseen order;
    fill(memory, 2);
  }
  origin.progress(std::chrono::milliseconds(20));
  const test::Unseen order;
  return differs(memory, 2);
}

}  // namespace

TEST_P(TransportContract, aClosedLinkFailsEveryOperationWithTheReason) {
  auto [local, target, ends, remote] = start(kPieces * kPiece);
  fill(target.region().slice(0, kPiece), 1);
  ends.a->close(kWhy);
  ends.a->close(Status(Code::failed, "a second reason"));
  Flood flood(OpKind::put, local, *remote);
  EXPECT_EQ(flood.post(*ends.a), kPieces);
  ASSERT_TRUE(flood.drive(*a_));
  flood.expectEachEndedOnce();
  for (const Completion& completion : flood.completions) {
    EXPECT_EQ(completion.status().code(), Code::cancelled);
    EXPECT_NE(completion.status().message().find(kWhy.message()), std::string::npos)
        << completion.status().toString();
  }
  EXPECT_EQ(differs(target.region().slice(0, kPiece), 1), "");
}

TEST_P(TransportContract, closeEndsEverythingPendingOnceAndNothingMovesAfterwards) {
  Buffer local = localBuffer(*a_, kPieces * kPiece);
  Buffer target = targetBuffer(*b_, kPieces * kPiece);
  for (int round = 0; round < 12; ++round) {
    SCOPED_TRACE(round);
    Ends ends = connect();
    auto remote = import(*ends.a, target);
    fill(local.region(), 1);
    Flood flood(OpKind::put, local, *remote);
    // Some rounds close a link that is busy, some one that is hardly there yet.
    if (round % 4 != 0) {
      ASSERT_TRUE(transfer(*a_, *ends.a, OpKind::put, local, 0, *remote, 0, 10).ok());
    }
    flood.post(*ends.a);
    for (int i = 0; i < round % 5; ++i) a_->progress(std::chrono::milliseconds(1));
    ends.a->close(kWhy);
    ASSERT_TRUE(flood.drive(*a_));
    flood.expectEachEndedOnce();
    ASSERT_EQ(changesWhenReused(target.region(), *a_), "");
    flood.expectEachEndedOnce();
  }
}

TEST_P(TransportContract, destroyingALinkFencesPutAndGet) {
  Buffer local = localBuffer(*a_, kPieces * kPiece);
  Buffer target = targetBuffer(*b_, kPieces * kPiece);
  for (int round = 0; round < 12; ++round) {
    SCOPED_TRACE(round);
    const bool put = round % 2 == 0;
    const Buffer& written = put ? target : local;
    Ends ends = connect();
    auto remote = import(*ends.a, target);
    Flood flood(put ? OpKind::put : OpKind::get, local, *remote);
    ASSERT_TRUE(transfer(*a_, *ends.a, OpKind::put, local, 0, *remote, 0, 10).ok());
    flood.post(*ends.a);
    if (round % 3 != 0) a_->progress(std::chrono::milliseconds(1));
    remote.reset();
    ends.a.reset();
    ASSERT_TRUE(flood.done()) << "the destructor returned before the operations had ended";
    flood.expectEachEndedOnce();
    ASSERT_EQ(changesWhenReused(written.region(), *a_), "");
  }
}

TEST_P(TransportContract, closeFromAnotherThreadLetsProgressGoOn) {
  Buffer local = localBuffer(*a_, kPieces * kPiece);
  Buffer target = targetBuffer(*b_, kPieces * kPiece);
  for (int round = 0; round < 10; ++round) {
    Ends ends = connect();
    auto remote = import(*ends.a, target);
    Flood flood(OpKind::put, local, *remote);
    flood.post(*ends.a);
    {
      std::jthread closer([&] { ends.a->close(kWhy); });
      ASSERT_TRUE(flood.drive(*a_));
    }
    flood.expectEachEndedOnce();
  }
}

TEST_P(TransportContract, aPeerThatClosesEndsOurOperations) {
  for (int round = 0; round < 6; ++round) {
    SCOPED_TRACE(round);
    auto [local, target, ends, remote] = start(kPieces * kPiece);
    ASSERT_TRUE(transfer(*a_, *ends.a, OpKind::put, local, 0, *remote, 0, 10).ok());
    Flood flood(OpKind::put, local, *remote);
    flood.post(*ends.a);
    if (round % 2 == 0) a_->progress(std::chrono::milliseconds(1));
    ends.b->close(kWhy);
    ASSERT_TRUE(flood.drive(*a_));
    flood.expectEachEndedOnce();
  }
}

TEST_P(TransportContract, anotherLinkOfTheSameTransportsGoesOnAfterAClose) {
  Buffer local = localBuffer(*a_, kPieces * kPiece);
  Buffer target = targetBuffer(*b_, kPieces * kPiece);
  fill(local.region(), 5);
  Ends closed = connect();
  Ends kept = connect();
  auto remoteClosed = import(*closed.a, target);
  auto remoteKept = import(*kept.a, target);
  Flood lost(OpKind::put, local, *remoteClosed);
  lost.post(*closed.a);
  closed.a->close(kWhy);
  ASSERT_TRUE(lost.drive(*a_));
  Status status = transfer(*a_, *kept.a, OpKind::put, local, 0, *remoteKept, 0, kPieces * kPiece);
  EXPECT_TRUE(status.ok()) << status.toString();
  EXPECT_EQ(differs(target.region(), 5), "");

  Ends later = connect();
  auto remoteLater = import(*later.a, target);
  status = transfer(*a_, *later.a, OpKind::get, local, 0, *remoteLater, 0, kPieces * kPiece);
  EXPECT_TRUE(status.ok()) << status.toString();
  EXPECT_EQ(differs(local.region(), 5), "");
}

}  // namespace hmc::contract
