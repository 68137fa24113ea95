#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <functional>

#include "unit/transport/tcp_fixture.h"

namespace {
// What happens while the kernel sends: a process is most often stopped when it comes back from
// there.
std::atomic<void (*)()> duringSend{nullptr};
}  // namespace

// In the place of libc's. Not of the thread sanitizer's, which orders threads by it.
#ifndef __SANITIZE_THREAD__
extern "C" ssize_t send(int fd, const void* bytes, size_t size, int flags) {
  if (auto* hook = duringSend.load()) hook();
  return syscall(SYS_sendto, fd, bytes, size, flags, nullptr, 0);
}
#endif

// What the target side does with a peer that asks for what it must not have, or asks slowly.
namespace hmc::tcp {

TEST_F(TcpTarget, endsAStreamThatAsksForMoreThanOneRequestMayMove) {
  for (uint64_t size :
       {uint64_t{0}, uint64_t{kLargestRequest} + 1, uint64_t{4} << 30, ~uint64_t{0}}) {
    RawPeer peer = welcomePeer();
    peer.say(requestBytes(RequestKind::put, 1, regionId(), 0, size) + "bytes");
    EXPECT_TRUE(peer.isHungUpOn()) << size;
  }
  EXPECT_EQ(memory_[0], '.');
}

TEST_F(TcpTarget, servesRequestsOfTheLargestSizeWhateverItAsksForItself) {
  std::string large(kLargestRequest, 'x');
  auto registration =
      *transport_->registerRegion({large.data(), large.size(), Device{}}, Access::readWrite);
  const uint64_t id = Key::decode(registration->key())->region;
  RawPeer peer = welcomePeer();
  peer.say(requestBytes(RequestKind::get, 1, id, 0, large.size()));
  EXPECT_EQ(Reply::unpack(peer.hear(Reply::kSize).data()).size, large.size());
  EXPECT_TRUE(peer.hear(large.size()) == large);
  ASSERT_EQ(peer.hear(Reply::kSize).size(), Reply::kSize);
  peer.say(requestBytes(RequestKind::put, 2, id, 0, large.size()));
  peer.say(std::string(large.size(), 'y'));
  ASSERT_EQ(peer.hear(Reply::kSize).size(), Reply::kSize);
  EXPECT_TRUE(large == std::string(large.size(), 'y'));
}

TEST_F(TcpTarget, tellsAConnectionThatComesAfterTheLinkIsClosedThatNothingIsApplied) {
  const std::string address = link_->address();
  const std::string first = greeting();
  link_.reset();
  RawPeer peer = RawPeer::dialTo(address);
  ASSERT_TRUE(peer.say(first + requestBytes(RequestKind::put, 1, regionId(), 0, 4) + "late"));
  const std::string last = farewell(first, options_.credentials);
  EXPECT_EQ(peer.hear(last.size()), last);
  EXPECT_EQ(memory_[0], '.');
}

TEST_F(TcpTarget, endsAStreamWithARequestOfAnUnknownKind) {
  RawPeer peer = welcomePeer();
  peer.say(requestBytes(static_cast<RequestKind>(0), 1, regionId(), 0, 1));
  EXPECT_TRUE(peer.isHungUpOn());
}

TEST_F(TcpTarget, refusesWhatLiesOutsideAndGoesOn) {
  RawPeer peer = welcomePeer();
  const uint64_t size = memory_.size();
  for (uint64_t offset : {size, size - 3, ~uint64_t{0}, ~uint64_t{0} - 3}) {
    peer.say(requestBytes(RequestKind::put, 1, regionId(), offset, 4) + "evil");
    expectRefused(peer, Code::outOfRange);
    peer.say(requestBytes(RequestKind::get, 1, regionId(), offset, 4));
    expectRefused(peer, Code::outOfRange);
  }
  expectServed(peer);
  EXPECT_EQ(memory_.find("evil"), std::string::npos);
}

TEST_F(TcpTarget, refusesAnUnknownRegionAndDrainsItsBytes) {
  RawPeer peer = welcomePeer();
  peer.say(requestBytes(RequestKind::put, 1, regionId() + 1, 0, 300000) + std::string(300000, '!'));
  expectRefused(peer, Code::notFound);
  peer.say(requestBytes(RequestKind::get, 2, regionId() + 1, 0, 300000));
  expectRefused(peer, Code::notFound);
  expectServed(peer);
}

TEST_F(TcpTarget, refusesPutIntoReadOnlyMemoryWhateverThePeerBelieves) {
  std::string constant(100, 'c');
  auto registration =
      *transport_->registerRegion({constant.data(), constant.size(), Device{}}, Access::read);
  const uint64_t id = Key::decode(registration->key())->region;
  RawPeer peer = welcomePeer();
  peer.say(requestBytes(RequestKind::put, 1, id, 0, 4) + "evil");
  expectRefused(peer, Code::permissionDenied);
  EXPECT_EQ(constant, std::string(100, 'c'));
  expectServed(peer);
}

TEST_F(TcpTarget, refusesTheRestOfAPutWhenTheMemoryIsUnregistered) {
  RawPeer peer = welcomePeer();
  peer.say(requestBytes(RequestKind::put, 1, regionId(), 0, 100000) + std::string(50000, '!'));
  // Ask through another stream whether the first half has arrived.
  RawPeer witness = welcomePeer();
  char last = '.';
  for (Deadline deadline = kPatience; last != '!' && !deadline.passed();) {
    witness.say(requestBytes(RequestKind::get, 1, regionId(), 49999, 1));
    const std::string answer = witness.hear(2 * Reply::kSize + 1);
    ASSERT_EQ(answer.size(), 2 * Reply::kSize + 1);
    last = answer[Reply::kSize];
  }
  ASSERT_EQ(last, '!');
  registration_.reset();
  memory_.assign(memory_.size(), '.');
  peer.say(std::string(50000, '!'));
  expectRefused(peer, Code::notFound);
  EXPECT_EQ(memory_.find('!'), std::string::npos);
}

TEST_F(TcpTarget, appliesNothingOnceTheLeaseHasExpired) {
  RawPeer peer = welcomePeer();
  expectServed(peer, 'a');
  options_.lease->revoke();
  peer.say(requestBytes(RequestKind::put, 1, regionId(), 0, 1) + "b");
  EXPECT_TRUE(peer.isHungUpOn());
  EXPECT_EQ(memory_[0], 'a');
}

TEST_F(TcpTarget, dropsWhatAPeerThatHungUpHadAskedFor) {
  RawPeer peer = welcomePeer();
  expectServed(peer, 'a');
  peer.say(requestBytes(RequestKind::put, 1, regionId(), 0, 100) + "half");
  shutdown(peer.fd(), SHUT_WR);
  EXPECT_TRUE(peer.isHungUpOn());
}

TEST_F(TcpTarget, aPeerThatDoesNotReadStallsNobody) {
  RawPeer lazy = welcomePeer();
  // More than any socket buffer, and more than the target reads ahead.
  std::string requests;
  for (uint64_t i = 0; i < 64; ++i) {
    requests += requestBytes(RequestKind::get, i, regionId(), 0, kPiece);
  }
  ASSERT_TRUE(lazy.say(requests));
  for (int i = 0; i < 3; ++i) {
    RawPeer other = welcomePeer();
    for (int round = 0; round < 100; ++round)
      expectServed(other, static_cast<char>('a' + round % 26));
  }
  // And it gets all of it when it reads in the end.
  for (uint64_t i = 0; i < 64; ++i) {
    const std::string head = lazy.hear(Reply::kSize);
    ASSERT_EQ(head.size(), Reply::kSize);
    EXPECT_EQ(Reply::unpack(head.data()).size, kPiece);
    ASSERT_EQ(lazy.hear(kPiece).size(), kPiece);
    const std::string tail = lazy.hear(Reply::kSize);
    ASSERT_EQ(tail.size(), Reply::kSize);
    EXPECT_EQ(Reply::unpack(tail.data()).id, i);
  }
}

TEST_F(TcpTarget, servesRequestsThatComeInPieces) {
  RawPeer peer = welcomePeer();
  const std::string bytes = requestBytes(RequestKind::put, 5, regionId(), 10, 20) +
                            std::string(20, 'p') +
                            requestBytes(RequestKind::put, 6, regionId(), 30, 3) + "qqq";
  for (char byte : bytes) ASSERT_TRUE(peer.say({byte}));
  EXPECT_EQ(peer.hear(2 * Reply::kSize).size(), 2 * Reply::kSize);
  EXPECT_EQ(memory_.substr(9, 25), "." + std::string(20, 'p') + "qqq.");
}

TEST_F(TcpTarget, answersABatchThatIsLargerThanItsBuffers) {
  RawPeer peer = welcomePeer();
  std::string batch;
  for (uint64_t i = 0; i < 5000; ++i) {
    batch += requestBytes(RequestKind::put, i, regionId(), i, 1) + "z";
  }
  ASSERT_TRUE(peer.say(batch));
  const std::string answers = peer.hear(5000 * Reply::kSize);
  ASSERT_EQ(answers.size(), 5000 * Reply::kSize);
  for (uint64_t i = 0; i < 5000; ++i) {
    ASSERT_EQ(Reply::unpack(answers.data() + i * Reply::kSize).id, i);
  }
  EXPECT_EQ(memory_.substr(0, 5001), std::string(5000, 'z') + ".");
}

// A target is stopped on its way back from sending answers, for longer than the lease, with more
// requests in its socket.
TEST_F(TcpTarget, appliesNothingAfterAnAnswerWhenTheLeaseIsOverByThen) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "the thread sanitizer has its own send()";
#endif
  enum Moment { first, queued, over };
  static std::atomic<Moment> moment;
  static std::function<void()> end;
  size_t applied = 0;
  auto arrived = [&] {
    return static_cast<size_t>(std::count(memory_.begin(), memory_.end(), 'c'));
  };
  end = [&] {
    applied = arrived();
    options_.lease->revoke();
  };
  moment = first;
  RawPeer peer = welcomePeer();
  // The kernel then has room for many requests that nobody reads.
  for (int i = 0; i < 8; ++i) {
    ASSERT_TRUE(peer.say(requestBytes(RequestKind::put, 1, regionId(), 0, memory_.size())));
    ASSERT_TRUE(peer.say(std::string(memory_.size(), '.')));
    ASSERT_EQ(peer.hear(Reply::kSize).size(), Reply::kSize);
  }
  duringSend = [] {
    if (moment == first)
      moment.wait(first);
    else if (moment.exchange(over) == queued)
      end();
  };
  const auto say = [&](const std::string& bytes) {
    return syscall(SYS_sendto, peer.fd(), bytes.data(), bytes.size(), MSG_NOSIGNAL, nullptr, 0);
  };
  ASSERT_GT(say(requestBytes(RequestKind::put, 1, regionId(), 0, 1) + "a"), 0);
  const size_t size = size_t{64} << 10;
  for (uint64_t i = 0; i < 16; ++i) {
    (void)say(requestBytes(RequestKind::put, 2 + i, regionId(), i * size, size) +
              std::string(size, 'c'));
  }
  moment = queued;
  moment.notify_all();
  while (!peer.hear(Reply::kSize).empty()) {
  }
  duringSend = nullptr;
  EXPECT_EQ(moment, over);
  EXPECT_GT(applied, 0U);
  EXPECT_EQ(arrived(), applied);
}

}  // namespace hmc::tcp
