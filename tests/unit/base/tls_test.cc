#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/socket.h>

#include <cerrno>
#include <fstream>
#include <thread>

#include "unit/base/tls_pair.h"

namespace hmc {
namespace {

using testing::HasSubstr;
using namespace test;  // NOLINT(google-build-using-namespace)
using Step = TlsSession::Step;

TlsPair withSecret() {
  return {contextOf(kBySecret, "hush"), contextOf(kBySecret, "hush")};
}

TEST(Tls, oneSecretIsEnoughForBothSides) {
  TlsPair pair = withSecret();
  ASSERT_TRUE(pair.shakeHands()) << pair.dialler->problem().toString();
  EXPECT_EQ(write(*pair.dialler, "to the acceptor").bytes, 15u);
  std::string got(100, '\0');
  EXPECT_EQ(readInto(*pair.acceptor, got).bytes, 15u);
  EXPECT_EQ(got.substr(0, 15), "to the acceptor");
  EXPECT_EQ(readInto(*pair.acceptor, got).bytes, 0u);
  EXPECT_EQ(write(*pair.acceptor, "and back").bytes, 8u);
  EXPECT_EQ(readInto(*pair.dialler, got).bytes, 8u);
}

TEST(Tls, nothingOfTheBytesIsOnTheWire) {
  TlsPair pair = withSecret();
  ASSERT_TRUE(pair.shakeHands());
  write(*pair.dialler, std::string(1000, 'x'));
  char wire[4096];
  const ssize_t size = recv(pair.acceptorFd.get(), wire, sizeof(wire), 0);
  ASSERT_GT(size, 1000);
  EXPECT_EQ(std::string(wire, static_cast<size_t>(size)).find("xxxx"), std::string::npos);
}

// Whoever writes learns of all that the other side can have read: it may answer at once.
TEST(Tls, whatThePeerCanReadIsCountedAsWritten) {
  TlsPair pair = withSecret();
  ASSERT_TRUE(pair.shakeHands());
  const int small = 32768;
  setsockopt(pair.diallerFd.get(), SOL_SOCKET, SO_SNDBUF, &small, sizeof(small));
  const std::string all(10 * TlsSession::kRecord, 'x');
  std::string got(TlsSession::kRecord, '\0');
  size_t written = 0;
  size_t read = 0;
  bool inPart = false;
  for (int i = 0; i < 1000 && read < all.size(); ++i) {
    const size_t now = write(*pair.dialler, all.substr(written)).bytes;
    written += now;
    inPart = inPart || (now > 0 && written < all.size());
    for (size_t more = 1; more > 0; read += more) more = readInto(*pair.acceptor, got).bytes;
    ASSERT_LE(read, written);
  }
  EXPECT_EQ(read, all.size());
  EXPECT_TRUE(inPart) << "the socket took everything at once";
}

TEST(Tls, everySessionExportsBytesOfItsOwn) {
  TlsPair one = withSecret();
  TlsPair other = withSecret();
  ASSERT_TRUE(one.shakeHands() && other.shakeHands());
  EXPECT_EQ(one.dialler->exported("label").size(), 32u);
  EXPECT_EQ(one.dialler->exported("label"), one.acceptor->exported("label"));
  EXPECT_NE(one.dialler->exported("label"), one.dialler->exported("another"));
  EXPECT_NE(one.dialler->exported("label"), other.dialler->exported("label"));
}

TEST(Tls, anotherSecretIsRefusedAtBothSides) {
  TlsPair pair(contextOf(kBySecret, "hush"), contextOf(kBySecret, "shush"));
  EXPECT_FALSE(pair.shakeHands());
  for (TlsSession* side : {pair.dialler.get(), pair.acceptor.get()}) {
    EXPECT_EQ(side->problem().code(), Code::permissionDenied) << side->problem().toString();
    EXPECT_THAT(side->problem().message(), HasSubstr("both sides need the same secret"));
  }
}

TEST(Tls, withoutSecretAndCertificatesThereIsNoContext) {
  auto made = TlsContext::create(kBySecret, "");
  EXPECT_EQ(made.status().code(), Code::invalidArgument);
  EXPECT_THAT(made.status().message(), HasSubstr("set a secret, or name a CA"));
}

TEST(Tls, aPlainPeerIsNoticedByItsFirstByteWhichStays) {
  TlsPair pair = withSecret();
  ASSERT_EQ(send(pair.diallerFd.get(), "\x1c", 1, 0), 1);
  EXPECT_EQ(pair.acceptor->handshake(), Step::failed);
  EXPECT_TRUE(pair.acceptor->peerIsPlain());
  char first = 0;
  EXPECT_EQ(recv(pair.acceptorFd.get(), &first, 1, 0), 1);
  EXPECT_EQ(pair.dialler->handshake(), Step::wantsRead);
  ASSERT_EQ(send(pair.acceptorFd.get(), "\x1c", 1, 0), 1);
  EXPECT_EQ(pair.dialler->handshake(), Step::failed);
  EXPECT_TRUE(pair.dialler->peerIsPlain());
  EXPECT_EQ(pair.dialler->problem().code(), Code::permissionDenied);
}

// The acceptor looks for the first byte and finds none; then the whole greeting comes.
TEST(Tls, theFirstByteIsNotMissedWhenItComesAtTheWrongMoment) {
  for (int round = 0; round < 300 && !testing::Test::HasFailure(); ++round) {
    TlsPair pair = withSecret();
    std::thread dialler([&] {
      while (!pair.dialler->isUp() && pair.dialler->handshake() != Step::failed) sched_yield();
    });
    Step step = Step::wantsRead;
    while (step != Step::done && step != Step::failed) {
      sched_yield();  // the other thread may need this core
      step = pair.acceptor->handshake();
    }
    EXPECT_FALSE(pair.acceptor->peerIsPlain()) << "round " << round;
    if (step == Step::failed) shutdown(pair.acceptorFd.get(), SHUT_RDWR);
    dialler.join();
  }
}

TEST(Tls, onlyAGoodbyeIsAnEnd) {
  std::string got(10, '\0');
  TlsPair honest = withSecret();
  ASSERT_TRUE(honest.shakeHands());
  write(*honest.dialler, "last");
  EXPECT_TRUE(honest.dialler->sayGoodbye());
  EXPECT_EQ(readInto(*honest.acceptor, got).bytes, 4u);
  EXPECT_TRUE(readInto(*honest.acceptor, got).ended);

  TlsPair cut = withSecret();
  ASSERT_TRUE(cut.shakeHands());
  write(*cut.dialler, "last");
  shutdown(cut.diallerFd.get(), SHUT_WR);
  EXPECT_EQ(readInto(*cut.acceptor, got).bytes, 4u);
  const TlsMoved end = readInto(*cut.acceptor, got);
  EXPECT_FALSE(end.ended);
  EXPECT_EQ(end.errnum, ECONNABORTED);
  EXPECT_THAT(cut.acceptor->problem().message(), HasSubstr("without the peer's goodbye"));
}

TEST(Tls, anAlteredByteBreaksTheSession) {
  TlsPair pair = withSecret();
  ASSERT_TRUE(pair.shakeHands());
  write(*pair.dialler, "hundred");
  char wire[4096];
  const ssize_t size = recv(pair.acceptorFd.get(), wire, sizeof(wire), 0);
  ASSERT_GT(size, 10);
  wire[10] = static_cast<char>(wire[10] ^ 1);
  ASSERT_EQ(send(pair.diallerFd.get(), wire, static_cast<size_t>(size), 0), size);
  std::string got(10, '.');
  const TlsMoved moved = readInto(*pair.acceptor, got);
  EXPECT_EQ(moved.errnum, EPROTO);
  EXPECT_EQ(got, std::string(10, '.'));
  EXPECT_THAT(pair.acceptor->problem().message(), HasSubstr("altered"));
}

// The socket takes a part of a batch, and the caller offers the rest again.
TEST(Tls, bytesArriveInOrderThroughASmallSocket) {
  TlsPair pair = withSecret();
  const int small = 8192;
  setsockopt(pair.diallerFd.get(), SOL_SOCKET, SO_SNDBUF, &small, sizeof(small));
  ASSERT_TRUE(pair.shakeHands());
  std::string bytes(300001, '\0');
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i * 7 + i / 251);
  std::string got;
  size_t refused = 0;
  for (size_t sent = 0; got.size() < bytes.size();) {
    // In unlike parts, a small one first, as headers and payloads are.
    const size_t head = std::min<size_t>(bytes.size() - sent, 64);
    const iovec parts[] = {{bytes.data() + sent, head},
                           {bytes.data() + sent + head, bytes.size() - sent - head}};
    const TlsMoved moved = pair.dialler->write(parts);
    ASSERT_EQ(moved.errnum, 0);
    sent += moved.bytes;
    refused += moved.bytes == 0;
    std::string some(5000, '\0');
    got.append(some.data(), 0);
    const TlsMoved read = readInto(*pair.acceptor, some);
    got.append(some, 0, read.bytes);
  }
  EXPECT_TRUE(got == bytes);
  EXPECT_GT(refused, 0u) << "the socket took everything at once: nothing was tested";
}

// One key must not protect too many records. Each side's sending key is its own affair.
TEST(Tls, anotherKeyIsTakenAfterSoManyRecordsInEitherDirection) {
  constexpr uint64_t kRecordsPerKey = 3;
  auto context = *TlsContext::forSecrets([](std::string_view) { return "seven"; }, kRecordsPerKey);
  TlsPair pair(context, context);
  pair.dialler = *context->dial(pair.diallerFd.get(), "link 7", "seven");
  ASSERT_TRUE(pair.shakeHands()) << pair.dialler->problem().toString();
  constexpr size_t kMessages = 400;
  std::string got(20, '\0');
  for (size_t i = 0; i < kMessages; ++i) {
    const std::string said = fmt::format("message {:06}", i);
    for (auto [from, to] : {std::pair{pair.dialler.get(), pair.acceptor.get()},
                            std::pair{pair.acceptor.get(), pair.dialler.get()}}) {
      ASSERT_EQ(write(*from, said).bytes, said.size());
      ASSERT_EQ(readInto(*to, got).bytes, said.size()) << to->problem().toString();
      EXPECT_EQ(got.substr(0, said.size()), said);
    }
  }
  EXPECT_EQ(pair.dialler->keyUpdates(), (kMessages - 1) / kRecordsPerKey);
  EXPECT_EQ(pair.acceptor->keyUpdates(), (kMessages - 1) / kRecordsPerKey);
  EXPECT_LT(TlsSession::kRecordsPerKey, uint64_t{23726566}) << "2^24.5: RFC 8446, 5.5";
}

// A large transfer that is one way needs no answer from the other side to get on.
TEST(Tls, keysChangeInTheMiddleOfATransfer) {
  auto context = *TlsContext::forSecrets([](std::string_view) { return "seven"; }, 2);
  TlsPair pair(context, context);
  pair.dialler = *context->dial(pair.diallerFd.get(), "link 7", "seven");
  ASSERT_TRUE(pair.shakeHands());
  const std::string bytes = std::string(size_t{1} << 20, 'x') + "the end";
  std::string got;
  for (size_t sent = 0; got.size() < bytes.size();) {
    if (sent < bytes.size()) sent += write(*pair.dialler, bytes.substr(sent)).bytes;
    std::string some(100000, '\0');
    const TlsMoved read = readInto(*pair.acceptor, some);
    ASSERT_EQ(read.errnum, 0) << pair.acceptor->problem().toString();
    got.append(some, 0, read.bytes);
  }
  EXPECT_TRUE(got == bytes);
  EXPECT_GE(pair.dialler->keyUpdates(), bytes.size() / TlsSession::kRecord / 2 - 1);
}

TEST(Tls, aDiallerNamesTheSecretThatItUses) {
  auto context = TlsContext::forSecrets([](std::string_view identity) {
    return identity == "link 7" ? std::string("seven") : std::string();
  });
  ASSERT_TRUE(context.ok());
  for (const auto& [identity, secret, known] :
       {std::tuple{"link 7", "seven", true}, {"link 8", "seven", false}, {"link 7", "8", false}}) {
    TlsPair pair(*context, *context);
    pair.dialler = *(*context)->dial(pair.diallerFd.get(), identity, secret);
    EXPECT_EQ(pair.shakeHands(), known) << identity << " " << secret;
  }
}

}  // namespace
}  // namespace hmc
