#include "control/handshake.h"

#include <gtest/gtest.h>

#include <random>

#include "base/codec.h"
#include "base/proof.h"
#include "base/random.h"

namespace hmc::control {
namespace {

const std::string kAcceptorId(16, 'A');

Ident someIdent() {
  return {std::string(16, 'D'), true, "dialler", "attributes", "host"};
}

TEST(Proof, isHmacSha256) {
  // RFC 4231, test case 2.
  EXPECT_EQ(hex(proof("Jefe", "what do ya want for nothing?")),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  EXPECT_TRUE(sameProof(proof("a", "b"), proof("a", "b")));
  EXPECT_FALSE(sameProof(proof("a", "b"), proof("a", "c")));
  EXPECT_FALSE(sameProof("", ""));
}

TEST(Handshake, carriesTheIdentBothWithAndWithoutSecret) {
  for (const char* secret : {"", "hush"}) {
    DiallerHandshake dialler(secret, "there");
    AcceptorHandshake acceptor(secret, kAcceptorId);
    auto challenge = acceptor.takeHello(dialler.hello());
    ASSERT_TRUE(challenge.ok()) << challenge.status().toString();
    auto id = dialler.takeChallenge(*challenge);
    ASSERT_TRUE(id.ok()) << id.status().toString();
    EXPECT_EQ(*id, kAcceptorId);
    auto ident = acceptor.takeIdent(dialler.ident(someIdent()));
    ASSERT_TRUE(ident.ok()) << ident.status().toString();
    EXPECT_EQ(ident->id, someIdent().id);
    EXPECT_TRUE(ident->again);
    EXPECT_EQ(ident->name, "dialler");
    EXPECT_EQ(ident->attributes, "attributes");
    EXPECT_EQ(ident->hostId, "host");
  }
}

TEST(Handshake, credentialsTakeTheSecretToKnow) {
  DiallerHandshake dialler("hush", "there");
  AcceptorHandshake acceptor("hush", kAcceptorId);
  ASSERT_TRUE(dialler.takeChallenge(*acceptor.takeHello(dialler.hello())).ok());
  std::string said = dialler.hello() + dialler.ident(someIdent());
  ASSERT_TRUE(acceptor.takeIdent(said.substr(dialler.hello().size())).ok());
  EXPECT_EQ(dialler.credentials(), acceptor.credentials());
  EXPECT_NE(dialler.credentials(), DiallerHandshake("", "there").credentials());
}

TEST(Handshake, saysWhichSideLacksTheSecret) {
  auto challengeFor = [](const std::string& dialler, const std::string& acceptor) {
    DiallerHandshake handshake(dialler, "tcp://there:1");
    auto challenge = AcceptorHandshake(acceptor, kAcceptorId).takeHello(handshake.hello());
    return handshake.takeChallenge(*challenge).status();
  };
  Status mine = challengeFor("", "hush");
  EXPECT_EQ(mine.code(), Code::permissionDenied);
  EXPECT_EQ(mine.message(), "tcp://there:1 demands a secret and this side has none");
  Status theirs = challengeFor("hush", "");
  EXPECT_EQ(theirs.code(), Code::permissionDenied);
  EXPECT_EQ(theirs.message(), "this side demands a secret and tcp://there:1 has none");
  Status other = challengeFor("hush", "shush");
  EXPECT_EQ(other.code(), Code::permissionDenied);
  EXPECT_EQ(other.message(), "tcp://there:1 has another secret than this side");
}

TEST(Handshake, acceptorRefusesAProofOfAnotherConversation) {
  DiallerHandshake dialler("hush", "there");
  AcceptorHandshake first("hush", kAcceptorId);
  AcceptorHandshake second("hush", kAcceptorId);
  auto challenge = first.takeHello(dialler.hello());
  ASSERT_TRUE(second.takeHello(dialler.hello()).ok());
  ASSERT_TRUE(dialler.takeChallenge(*challenge).ok());
  std::string ident = dialler.ident(someIdent());
  EXPECT_TRUE(first.takeIdent(ident).ok());
  EXPECT_EQ(second.takeIdent(ident).status().code(), Code::permissionDenied);
}

TEST(Handshake, proofCoversTheWholeIdent) {
  DiallerHandshake dialler("hush", "there");
  AcceptorHandshake acceptor("hush", kAcceptorId);
  ASSERT_TRUE(dialler.takeChallenge(*acceptor.takeHello(dialler.hello())).ok());
  std::string ident = dialler.ident(someIdent());
  for (size_t i = 0; i < ident.size(); ++i) {
    std::string altered = ident;
    altered[i] = static_cast<char>(altered[i] ^ 1);
    EXPECT_FALSE(acceptor.takeIdent(altered).ok()) << "byte " << i;
  }
}

TEST(Handshake, versionMismatchNamesBothSides) {
  AcceptorHandshake acceptor("", kAcceptorId);
  std::string hello = Writer().u32(0x31434d48).u16(7).u16(9).raw(std::string(16, 'n')).take();
  Status status = acceptor.takeHello(hello).status();
  EXPECT_EQ(status.code(), Code::unsupported);
  EXPECT_NE(status.message().find("7 to 9"), std::string::npos);
  EXPECT_NE(status.message().find("3 to 3"), std::string::npos);

  DiallerHandshake dialler("", "there");
  std::string challenge = Writer().u16(5).u8(0).raw(std::string(32, 'x')).string("").take();
  Status chosen = dialler.takeChallenge(challenge).status();
  EXPECT_EQ(chosen.code(), Code::unsupported);
  EXPECT_NE(chosen.message().find("version 5"), std::string::npos);
}

TEST(Handshake, helloOfALaterVersionMayBeLonger) {
  DiallerHandshake dialler("", "there");
  EXPECT_TRUE(AcceptorHandshake("", kAcceptorId).takeHello(dialler.hello() + "more").ok());
}

TEST(Handshake, everyTruncationAndRandomChangeIsAnErrorOrHarmless) {
  std::mt19937 random(11);
  DiallerHandshake dialler("", "there");
  AcceptorHandshake acceptor("", kAcceptorId);
  std::string challenge = *acceptor.takeHello(dialler.hello());
  ASSERT_TRUE(dialler.takeChallenge(challenge).ok());
  std::string ident = dialler.ident(someIdent());
  std::string welcome = encodeWelcome({"name", "attributes", "exchange", "token"});
  for (size_t size = 0; size < dialler.hello().size(); ++size) {
    EXPECT_FALSE(
        AcceptorHandshake("", kAcceptorId).takeHello(dialler.hello().substr(0, size)).ok());
  }
  for (size_t size = 0; size < ident.size(); ++size) {
    EXPECT_FALSE(acceptor.takeIdent(ident.substr(0, size)).ok());
  }
  for (size_t size = 0; size < welcome.size(); ++size) {
    EXPECT_FALSE(decodeWelcome(welcome.substr(0, size)).ok());
  }
  for (int round = 0; round < 20000; ++round) {
    std::string bytes = round % 3 == 0 ? ident : round % 3 == 1 ? welcome : challenge;
    for (int change = 0; change < 3; ++change) {
      bytes[random() % bytes.size()] = static_cast<char>(random());
    }
    (void)acceptor.takeIdent(bytes);
    (void)decodeWelcome(bytes);
    decodeStatus(bytes);
    (void)DiallerHandshake("", "there").takeChallenge(bytes);
    (void)AcceptorHandshake("", kAcceptorId).takeHello(bytes);
  }
}

TEST(Handshake, statusTravels) {
  Status status = decodeStatus(encodeStatus(Status(Code::exhausted, "full")));
  EXPECT_EQ(status.code(), Code::exhausted);
  EXPECT_EQ(status.message(), "full");
  EXPECT_EQ(decodeStatus("").code(), Code::failed);
  EXPECT_EQ(decodeCode(200), Code::failed);
  EXPECT_EQ(decodeCode(0), Code::failed);
}

}  // namespace
}  // namespace hmc::control
