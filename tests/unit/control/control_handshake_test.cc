#include <gtest/gtest.h>
#include <netinet/in.h>

#include <random>
#include <thread>

#include "base/codec.h"
#include "base/host_id.h"
#include "control/socket.h"
#include "raw_peer.h"
#include "test_peer.h"

namespace hmc::control {
namespace {

using namespace test;

TEST(Handshake, introducesBothSidesToEachOther) {
  TestPeer server("server");
  TestPeer client("client");
  server.control->setAttributes("server's attributes");
  std::string listener = server.listen();
  auto mine = client.connect(listener, "client's attributes");
  ASSERT_TRUE(mine.ok()) << mine.status().toString();
  auto theirs = server.events.waitJoined();
  ASSERT_TRUE(theirs);
  EXPECT_EQ((*mine)->peer().id, server.control->id());
  EXPECT_EQ((*mine)->peer().name, "server");
  EXPECT_EQ((*mine)->peer().attributes, "server's attributes");
  EXPECT_EQ(theirs->peer().id, client.control->id());
  EXPECT_EQ(theirs->peer().name, "client");
  EXPECT_EQ(theirs->peer().attributes, "client's attributes");
  EXPECT_TRUE((*mine)->initiator());
  EXPECT_FALSE(theirs->initiator());
  EXPECT_EQ((*mine)->remoteHost(), "127.0.0.1");
  EXPECT_EQ(listener, "tcp://127.0.0.1:" + std::to_string((*mine)->remotePort()));
  EXPECT_EQ(theirs->localHost(), "127.0.0.1");
  EXPECT_EQ(client.events.joinedCount(), 1u);
  EXPECT_TRUE((*mine)->status().ok());
  EXPECT_FALSE((*mine)->lease()->expired());
}

TEST(Handshake, anEmptyAttributesArgumentMeansThoseOfTheControl) {
  TestPeer server("server");
  TestPeer client("client");
  client.control->setAttributes("set before");
  ASSERT_TRUE(client.connect(server.listen()).ok());
  EXPECT_EQ(server.events.waitJoined()->peer().attributes, "set before");
}

TEST(Handshake, sameSecretIsWelcome) {
  TestPeer server("server", "hush");
  TestPeer client("client", "hush");
  auto channel = client.connect(server.listen());
  ASSERT_TRUE(channel.ok()) << channel.status().toString();
}

TEST(Handshake, differentSecretsAreRefusedByTheDialler) {
  for (auto [mine, theirs] : {std::pair{"", "hush"}, {"hush", ""}, {"hush", "shush"}}) {
    TestPeer server("server", theirs);
    TestPeer client("client", mine);
    auto channel = client.connect(server.listen());
    ASSERT_FALSE(channel.ok());
    EXPECT_EQ(channel.status().code(), Code::permissionDenied) << channel.status().toString();
    EXPECT_EQ(server.events.joinedCount(), 0u);
  }
}

TEST(Handshake, aVisitorWithoutTheSecretLearnsNothing) {
  TestPeer server("the name", "hush");
  server.control->setAttributes("the attributes");
  std::string listener = server.listen();
  RawPeer peer(listener, "shush");
  peer.say(FrameType::hello, DiallerHandshake("shush", "").hello());
  auto challenge = peer.hear();
  ASSERT_EQ(challenge.type, FrameType::challenge);
  auto answer = peer.introduce("intruder");
  EXPECT_EQ(answer.type, FrameType::refused);
  EXPECT_EQ(decodeStatus(answer.payload).code(), Code::permissionDenied);
  for (const auto& said : {challenge.payload, answer.payload}) {
    EXPECT_EQ(said.find("the name"), std::string::npos);
    EXPECT_EQ(said.find("the attributes"), std::string::npos);
  }
  EXPECT_TRUE(peer.hangsUp());
  EXPECT_EQ(server.events.joinedCount(), 0u);
}

TEST(Handshake, anotherVersionIsToldBothVersions) {
  TestPeer server("server");
  RawPeer peer(server.listen());
  peer.say(FrameType::hello,
           Writer().u32(0x31434d48).u16(40).u16(41).raw(std::string(16, 'n')).bytes());
  auto answer = peer.hear();
  ASSERT_EQ(answer.type, FrameType::refused);
  Status status = decodeStatus(answer.payload);
  EXPECT_EQ(status.code(), Code::unsupported);
  EXPECT_NE(status.message().find("40 to 41"), std::string::npos);
  EXPECT_NE(status.message().find("3 to 3"), std::string::npos);
}

struct ServerAndClient {
  // How a connect() ends that this side refuses.
  Status refusedBy(TestPeer& side, Code code, const char* why) {
    side.events.refuseWith(error(code, "{}", why));
    return client.connect(server.listen()).status();
  }
  TestPeer server{"server"};
  TestPeer client{"client"};
};

TEST(Handshake, aRefusalReachesTheDiallerWithItsSentence) {
  ServerAndClient two;
  Status status = two.refusedBy(two.server, Code::exhausted, "no seat left");
  EXPECT_EQ(status.code(), Code::exhausted);
  EXPECT_NE(status.message().find("no seat left"), std::string::npos);
  EXPECT_EQ(two.client.events.joinedCount(), 0u);
}

TEST(Handshake, aDiallerThatRefusesSaysSoAndTheAcceptorSeesItLeave) {
  ServerAndClient two;
  Status status = two.refusedBy(two.client, Code::invalidArgument, "wrong attributes");
  EXPECT_EQ(status.code(), Code::invalidArgument);
  Status left = two.server.events.waitLeft();
  EXPECT_EQ(left.code(), Code::disconnected);
  EXPECT_NE(left.message().find("wrong attributes"), std::string::npos) << left.toString();
  EXPECT_EQ(two.client.events.leftCount(), 0u);
}

ControlOptions impatient() {
  ControlOptions options;
  options.name = "server";
  options.handshake = std::chrono::milliseconds(1500);
  return options;
}

// On a busy machine our own handshake may take too long as well.
Result<std::shared_ptr<Channel>> connectAtLast(TestPeer& client, const std::string& listener) {
  Deadline deadline = kPatience;
  auto channel = client.connect(listener);
  while (channel.status().code() == Code::disconnected && !deadline.passed()) {
    channel = client.connect(listener);
  }
  return channel;
}

TEST(Handshake, aSilentClientIsDroppedAndOthersAreServedMeanwhile) {
  TestPeer server(impatient());
  TestPeer client("client");
  std::string listener = server.listen();
  RawPeer silent(listener);
  RawPeer stalled(listener);
  stalled.greet();
  EXPECT_TRUE(connectAtLast(client, listener).ok());
  EXPECT_TRUE(silent.hangsUp());
  EXPECT_TRUE(stalled.hangsUp());
}

// With the time that a handshake may take by default, which is not waited for.
TEST(Handshake, silentClientsGiveWayToNewOnes) {
  TestPeer server("server", "hush");
  TestPeer client("client", "hush");
  std::string listener = server.listen();
  std::vector<std::unique_ptr<RawPeer>> crowd;
  // The kernel keeps those that say nothing at all.
  for (int i = 0; i < 600; ++i) {
    crowd.push_back(std::make_unique<RawPeer>(listener));
    if (i % 2 == 0) crowd.back()->say(std::string_view("\x1c"));
  }
  const auto began = std::chrono::steady_clock::now();
  auto channel = client.connect(listener);
  EXPECT_TRUE(channel.ok()) << channel.status().toString();
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(4));
}

TEST(Handshake, aClientThatGaveWayIsToldWhy) {
  TestPeer server("server", "hush");
  std::string listener = server.listen();
  RawPeer first(listener, "hush");
  first.say(std::string_view("\x1c"));
  std::vector<std::unique_ptr<RawPeer>> crowd;
  for (int i = 0; i < 300; ++i) {
    crowd.push_back(std::make_unique<RawPeer>(listener));
    crowd.back()->say(std::string_view("\x1c"));
  }
  const auto told = first.hear();
  ASSERT_EQ(told.type, FrameType::refused);
  EXPECT_EQ(decodeStatus(told.payload).code(), Code::exhausted);
}

TEST(Handshake, garbageIsHungUpOn) {
  TestPeer server("server");
  TestPeer client("client");
  std::string listener = server.listen();
  std::string huge(sealedHeader(FrameType::hello, 0, 0, 0xffffffffu, 0).data(), kFrameHeader);
  for (const std::string& bytes :
       {std::string("GET / HTTP/1.0\r\n\r\n"), std::string(100, '\0'), std::string(5000, '\xff'),
        huge, frameBytes(FrameType::message, "too early"), frameBytes(FrameType::hello, "short"),
        frameBytes(FrameType::hello, std::string(24, 'x'))}) {
    RawPeer peer(listener);
    peer.say(std::string_view(bytes));
    EXPECT_TRUE(peer.hangsUp());
  }
  EXPECT_TRUE(client.connect(listener).ok());
}

// Its frames had no checksums, and its dialler reads none.
TEST(Handshake, aDiallerOfAVersionBeforeIsToldSoInItsOwnFrames) {
  TestPeer server("server");
  RawPeer peer(server.listen());
  const std::string hello = DiallerHandshake("", "").hello();
  const auto older = [](FrameType type, size_t size) {
    return Writer().u32(static_cast<uint32_t>(size)).u32(static_cast<uint32_t>(type)).take();
  };
  peer.say(std::string_view(older(FrameType::hello, hello.size()) + hello));
  const std::string heard = peer.everything();
  ASSERT_GT(heard.size(), 8u);
  EXPECT_EQ(heard.substr(0, 8), older(FrameType::refused, heard.size() - 8));
  const Status why = decodeStatus(heard.substr(8));
  EXPECT_EQ(why.code(), Code::unsupported);
  EXPECT_NE(why.message().find("before 3"), std::string::npos) << why.message();
}

TEST(Handshake, speakingBeforeTheAnswerIsHungUpOn) {
  TestPeer server("server");
  RawPeer peer(server.listen());
  ASSERT_TRUE(peer.greet());
  DiallerHandshake other("", "");
  std::string ident = frameBytes(FrameType::ident, other.ident({std::string(16, 'i'), false}));
  peer.say(std::string_view(ident + frameBytes(FrameType::ping, "12345678")));
  EXPECT_TRUE(peer.hangsUp());
  EXPECT_EQ(server.events.joinedCount(), 0u);
}

TEST(Handshake, survivesRandomChangesOfItsBytes) {
  TestPeer server("server");
  TestPeer client("client");
  std::string listener = server.listen();
  std::mt19937 random(1);
  for (int round = 0; round < 300; ++round) {
    RawPeer peer(listener);
    DiallerHandshake handshake("", listener);
    std::string hello = handshake.hello();
    std::string ident = handshake.ident({std::string(16, 'f'), false, "fuzz", "a", "h"});
    const auto change = [&random](std::string& bytes) {
      for (unsigned i = 0; i < 1 + random() % 3; ++i)
        bytes[random() % bytes.size()] = static_cast<char>(random());
    };
    const bool sealed = random() % 2 == 0;  // with the checksums that fit
    if (sealed) change(random() % 2 == 0 ? hello : ident);
    std::string bytes = frameBytes(FrameType::hello, hello) + frameBytes(FrameType::ident, ident);
    if (!sealed) change(bytes);
    bytes.resize(random() % 2 ? bytes.size() : random() % bytes.size());
    peer.say(std::string_view(bytes));
  }
  EXPECT_TRUE(client.connect(listener).ok());
}

TEST(Handshake, aDialledStrangerThatSpeaksNonsenseIsAnError) {
  TestPeer client("client");
  auto server = Fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  SocketAddress at = resolve(*parseAddress("tcp://127.0.0.1:0"), kPatience)->front();
  ASSERT_EQ(bind(server.get(), at.get(), at.size), 0);
  ASSERT_EQ(listen(server.get(), 8), 0);
  socklen_t size = sizeof(at.bytes);
  getsockname(server.get(), at.get(), &size);
  std::string listener =
      "tcp://127.0.0.1:" + std::to_string(ntohs(reinterpret_cast<sockaddr_in&>(at.bytes).sin_port));
  std::jthread stranger([&] {
    auto stream = socketStream(Fd(accept(server.get(), nullptr, nullptr)));
    (void)writeAll(*stream, "220 mail.example ESMTP ready\r\n", "", kPatience);
    char ignored[64];
    (void)readAll(*stream, ignored, sizeof(ignored), "", kPatience);
  });
  auto channel = client.connect(listener);
  ASSERT_FALSE(channel.ok());
  EXPECT_EQ(channel.status().code(), Code::failed) << channel.status().toString();

  auto silent = client.control->connect(listener, "", std::chrono::milliseconds(200));
  ASSERT_FALSE(silent.ok());
  EXPECT_EQ(silent.status().code(), Code::deadlineExceeded) << silent.status().toString();
}

TEST(Handshake, aRingIsOfferedToPeersOfThisHostUnlessToldNotTo) {
  for (bool ring : {true, false}) {
    ControlOptions options;
    options.name = "server";
    options.ring = ring;
    TestPeer server(options);
    RawPeer peer(server.listen());
    ASSERT_TRUE(peer.greet());
    auto welcome = decodeWelcome(peer.introduce("raw", hostId()).payload);
    ASSERT_TRUE(welcome.ok()) << welcome.status().toString();
    EXPECT_EQ(!welcome->token.empty(), ring);
  }
}

// The origin of a put waits for its lease, and then calls the put over. The target must have ended
// by then.
TEST(Handshake, bothSidesHaveTheShorterLease) {
  using namespace std::chrono_literals;
  for (bool shortServer : {true, false}) {
    ControlOptions brief, patient;
    brief.heartbeat = 500ms;
    brief.lease = 20s;
    patient.heartbeat = 30s;
    patient.lease = 60s;
    TestPeer server(shortServer ? brief : patient);
    TestPeer client(shortServer ? patient : brief);
    const auto channel = client.connect(server.listen());
    ASSERT_TRUE(channel.ok()) << channel.status().toString();
    EXPECT_EQ((*channel)->lease()->length(), 20s);
    EXPECT_EQ(server.events.waitJoined()->lease()->length(), 20s);
  }
}

TEST(Handshake, oneSideThatWantsNoRingIsEnough) {
  for (bool ring : {true, false}) {
    ControlOptions with, without;
    without.ring = false;
    TestPeer server(ring ? with : without);
    TestPeer client(ring ? without : with);
    auto channel = client.connect(server.listen());
    ASSERT_TRUE(channel.ok()) << channel.status().toString();
    settle(**channel, *server.events.waitJoined());
    EXPECT_FALSE((*channel)->trySend(MessageKind::tag, 0, "through the ring"));
  }
}

}  // namespace
}  // namespace hmc::control
