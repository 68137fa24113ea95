#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include "fakes/certificates.h"
#include "raw_peer.h"
#include "test_peer.h"

// Encrypted channels: who gets through, what the others are told, and that nothing else changes.
namespace hmc::control {
namespace {

using namespace test;
using hmc::test::Certificates;
using testing::HasSubstr;
using TlsPtr = std::shared_ptr<TlsContext>;

const TlsOptions kBySecret{.mode = TlsOptions::Mode::required};

ControlOptions withTls(const std::string& name, const TlsOptions& tls,
                       const std::string& secret = "") {
  ControlOptions options;
  options.name = name;
  options.secret = secret;
  options.tls = *TlsContext::create(tls, secret);
  return options;
}

// Two that know each other by a secret, or by certificates.
struct TlsPeers {
  explicit TlsPeers(bool bySecret, bool ring = false)
      : server(make("server", bySecret, ring)), client(make("client", bySecret, ring)) {}
  ControlOptions make(const std::string& name, bool bySecret, bool ring) {
    ControlOptions options =
        bySecret ? withTls(name, kBySecret, "hush") : withTls(name, ca.issue(name));
    options.ring = ring;
    return options;
  }
  Certificates ca;
  TestPeer server;
  TestPeer client;
};

TEST(TlsControl, everythingThatAChannelDoesWorksEncrypted) {
  for (const bool bySecret : {true, false}) {
    for (const bool ring : {false, true}) {
      TlsPeers peers(bySecret, ring);
      auto mine = peers.client.connect(peers.server.listen());
      ASSERT_TRUE(mine.ok()) << mine.status().toString();
      auto theirs = peers.server.events.waitJoined();
      ASSERT_TRUE(theirs);
      EXPECT_EQ((*mine)->credentials(), theirs->credentials());
      settle(**mine, *theirs);
      EXPECT_TRUE(sendTag(**mine, "hello").ok());
      EXPECT_EQ(receiveText(*theirs, MessageKind::tag), "hello");
      auto answer = (*mine)->call(7, "question", kPatience);
      ASSERT_TRUE(answer.ok()) << answer.status().toString();
      EXPECT_EQ(*answer, "question/7");
      // Many records each way, and back-pressure in between.
      const std::string large(size_t{3} << 20, 'l');
      answer = (*mine)->call(1, large, kPatience);
      ASSERT_TRUE(answer.ok()) << answer.status().toString();
      EXPECT_TRUE(*answer == large + "/1");
      (*mine)->close(error(Code::cancelled, "enough"));
      EXPECT_THAT(peers.server.events.waitLeft().message(), HasSubstr("enough"));
    }
  }
}

TEST(TlsControl, alsoOverUnixSockets) {
  TlsPeers peers(true);
  const std::string path = fmt::format("unix:///tmp/hmc-tls-{}.sock", hex(randomBytes(4)));
  auto channel = peers.client.connect(peers.server.listen(path));
  EXPECT_TRUE(channel.ok()) << channel.status().toString();
}

TEST(TlsControl, manyThreadsUseBothDirectionsAtOnce) {
  TlsPeers peers(true);
  auto mine = peers.client.connect(peers.server.listen());
  ASSERT_TRUE(mine.ok());
  auto theirs = peers.server.events.waitJoined();
  constexpr int kMessages = 300;
  std::vector<std::jthread> threads;
  for (const auto& end : {*mine, theirs}) {
    for (int sender = 0; sender < 2; ++sender) {
      threads.emplace_back([end] {
        for (int i = 0; i < kMessages; ++i) EXPECT_TRUE(sendTag(*end, std::string(3000, 'x')).ok());
      });
    }
    threads.emplace_back([end] {
      for (int i = 0; i < 2 * kMessages; ++i)
        EXPECT_EQ(receiveText(*end, MessageKind::tag), std::string(3000, 'x'));
    });
    threads.emplace_back([end] {
      for (int i = 0; i < 20; ++i) EXPECT_TRUE(end->call(2, "x", kPatience).ok());
    });
  }
  threads.clear();
  EXPECT_TRUE((*mine)->status().ok()) << (*mine)->status().toString();
}

TEST(TlsControl, credentialsAreTheSessionsAlsoWithoutASecret) {
  Certificates ca;
  TestPeer server(withTls("server", ca.issue("server")));
  const std::string listener = server.listen();
  TestPeer client(withTls("client", ca.issue("client")));
  auto channel = client.connect(listener);
  ASSERT_TRUE(channel.ok());
  EXPECT_EQ((*channel)->credentials().size(), 32u);
  EXPECT_EQ((*channel)->credentials(), server.events.waitJoined()->credentials());
}

TEST(TlsControl, anotherSecretIsRefusedWithASentence) {
  TestPeer server(withTls("server", kBySecret, "hush"));
  TestPeer client(withTls("client", kBySecret, "shush"));
  auto channel = client.connect(server.listen());
  EXPECT_EQ(channel.status().code(), Code::permissionDenied) << channel.status().toString();
  EXPECT_THAT(channel.status().message(), HasSubstr("both sides need the same secret"));
  EXPECT_EQ(server.events.joinedCount(), 0u);
}

TEST(TlsControl, certificatesThatDoNotFitAreRefusedWithASentence) {
  Certificates ours;
  Certificates theirs("another CA");
  TlsOptions foreign = theirs.issue("foreign");
  foreign.ca = ours.ca();
  TestPeer server(withTls("server", ours.issue("server")));
  const std::string listener = server.listen();
  for (const auto& [files, reason] : {std::pair{foreign, "unknown ca"},
                                      {ours.issue("old", -60), "certificate expired"},
                                      {theirs.issue("stranger"), "certificate verify failed"}}) {
    TestPeer client(withTls("client", files));
    auto channel = client.connect(listener);
    EXPECT_EQ(channel.status().code(), Code::permissionDenied) << channel.status().toString();
    EXPECT_THAT(channel.status().message(), HasSubstr(reason));
  }
  EXPECT_EQ(server.events.joinedCount(), 0u);
}

TEST(TlsControl, aSecretIsDemandedBesideCertificatesToo) {
  Certificates ca;
  TestPeer server(withTls("server", ca.issue("server"), "hush"));
  const std::string listener = server.listen();
  TestPeer without(withTls("client", ca.issue("client")));
  EXPECT_THAT(without.connect(listener).status().message(), HasSubstr("demands a secret"));
  TestPeer with(withTls("client", ca.issue("client"), "hush"));
  EXPECT_TRUE(with.connect(listener).ok());
}

TEST(TlsControl, plainAndTlsTellEachOtherAtOnce) {
  TestPeer encrypted(withTls("encrypted", kBySecret, "hush"));
  TestPeer plain("plain", "hush");
  auto inClear = plain.connect(encrypted.listen());
  EXPECT_EQ(inClear.status().code(), Code::permissionDenied) << inClear.status().toString();
  EXPECT_THAT(inClear.status().message(), HasSubstr("the peer demands TLS"));
  EXPECT_THAT(inClear.status().message(), HasSubstr("HMC_TLS=required"));
  auto inTls = encrypted.connect(plain.listen());
  EXPECT_EQ(inTls.status().code(), Code::unsupported) << inTls.status().toString();
  EXPECT_THAT(inTls.status().message(), HasSubstr("does not encrypt"));
  EXPECT_THAT(inTls.status().message(), HasSubstr("HMC_TLS=required"));
  EXPECT_EQ(encrypted.events.joinedCount() + plain.events.joinedCount(), 0u);
}

TEST(TlsControl, aPlainDiallerLearnsNothing) {
  TestPeer server(withTls("the name", kBySecret, "hush"));
  RawPeer stranger(server.listen(), "hush");
  stranger.say(FrameType::hello, DiallerHandshake("hush", "").hello());
  EXPECT_EQ(stranger.hear().type, FrameType::refused);
  EXPECT_TRUE(stranger.hangsUp());
}

TEST(TlsControl, silenceAndHalfAHandshakeAreHungUpOn) {
  ControlOptions options = withTls("server", kBySecret, "hush");
  options.handshake = std::chrono::milliseconds(100);
  TestPeer server(options);
  const std::string listener = server.listen();
  RawPeer silent(listener);
  RawPeer half(listener);
  half.say(std::string_view("\x16\x03\x01\x01\x00", 5));
  EXPECT_TRUE(silent.hangsUp());
  EXPECT_TRUE(half.hangsUp());
}

TEST(TlsControl, certificatesAreReplacedWhileItRuns) {
  Certificates ca;
  TestPeer server(withTls("server", ca.issue("server")));
  const std::string listener = server.listen();
  TestPeer before(withTls("before", ca.issue("before")));
  auto old = before.connect(listener);
  ASSERT_TRUE(old.ok());
  ca.issue("server", -60);
  TestPeer after(withTls("after", ca.issue("after")));
  EXPECT_THAT(after.connect(listener).status().message(), HasSubstr("certificate has expired"));
  ca.issue("server");
  EXPECT_TRUE(after.connect(listener).ok());
  EXPECT_TRUE((*old)->call(1, "x", kPatience).ok()) << "what is connected goes on";
}

}  // namespace
}  // namespace hmc::control
