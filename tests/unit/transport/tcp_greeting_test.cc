#include "unit/transport/tcp_fixture.h"

// Connections at a tcp listener: which become streams of a link, and which are closed.
namespace hmc::tcp {

using TcpGreeting = TcpTarget;

TEST_F(TcpGreeting, aPeerThatKnowsTokenAndCredentialsIsServed) {
  RawPeer peer = welcomePeer();
  expectServed(peer);
}

TEST_F(TcpGreeting, garbageIsHungUpOn) {
  RawPeer garbage = RawPeer::dialTo(link_->address());
  garbage.say("GET / HTTP/1.1\r\nHost: localhost\r\nUser-Agent: longer than any greeting\r\n\r\n");
  EXPECT_TRUE(garbage.isHungUpOn());
  RawPeer peer = welcomePeer();
  expectServed(peer);
}

TEST_F(TcpGreeting, aWrongTokenIsHungUpOn) {
  std::string wrong = token();
  wrong[kTokenSize - 1] = static_cast<char>(wrong[kTokenSize - 1] ^ 1);
  RawPeer stranger = RawPeer::dialTo(link_->address());
  stranger.say(Greeting{1, 0, wrong}.pack(options_.credentials) +
               requestBytes(RequestKind::put, 1, regionId(), 0, 1) + "!");
  EXPECT_TRUE(stranger.isHungUpOn());
  EXPECT_EQ(memory_[0], '.');
}

TEST_F(TcpGreeting, theTokenWithoutTheCredentialsIsHungUpOn) {
  for (const std::string& guess : {std::string(), options_.credentials + "!"}) {
    RawPeer thief = RawPeer::dialTo(link_->address());
    thief.say(Greeting{1, 0, token()}.pack(guess) +
              requestBytes(RequestKind::put, 1, regionId(), 0, 1) + "!");
    EXPECT_TRUE(thief.isHungUpOn()) << guess;
  }
  EXPECT_EQ(memory_[0], '.');
  RawPeer peer = welcomePeer();
  expectServed(peer);
}

TEST_F(TcpGreeting, aGreetingThatWasOverheardOpensNoSecondStream) {
  const std::string overheard = greeting();
  RawPeer peer = RawPeer::dialTo(link_->address());
  peer.say(overheard);
  expectServed(peer);
  RawPeer thief = RawPeer::dialTo(link_->address());
  thief.say(overheard);
  EXPECT_TRUE(thief.isHungUpOn());
  // Nor with another number, which the proof covers.
  std::string changed = overheard;
  changed[8] = static_cast<char>(changed[8] ^ 1);
  RawPeer other = RawPeer::dialTo(link_->address());
  other.say(changed);
  EXPECT_TRUE(other.isHungUpOn());
  expectServed(peer);
}

TEST_F(TcpGreeting, anUnknownRoleOrMagicIsHungUpOn) {
  RawPeer role = RawPeer::dialTo(link_->address());
  role.say(greeting(static_cast<Role>(9)));
  EXPECT_TRUE(role.isHungUpOn());
  std::string bytes = greeting();
  bytes[0] = 'X';
  RawPeer magic = RawPeer::dialTo(link_->address());
  magic.say(bytes);
  EXPECT_TRUE(magic.isHungUpOn());
}

TEST_F(TcpGreeting, theTokenOfAClosedLinkIsNotWelcomeAnyMore) {
  const std::string address = link_->address();
  const std::string next = greeting();
  RawPeer early = welcomePeer();
  expectServed(early);
  link_->close(Status(Code::cancelled, "closed by the test"));
  EXPECT_TRUE(early.isHungUpOn());
  RawPeer late = RawPeer::dialTo(address);
  late.say(next);
  EXPECT_TRUE(late.isHungUpOn());
}

TEST_F(TcpGreeting, silenceIsHungUpOnInTheEnd) {
  start({.connectTimeout = std::chrono::milliseconds(100)});
  RawPeer silent = RawPeer::dialTo(link_->address());
  RawPeer halting = RawPeer::dialTo(link_->address());
  halting.say(greeting().substr(0, 10));
  EXPECT_TRUE(silent.isHungUpOn());
  EXPECT_TRUE(halting.isHungUpOn());
}

TEST_F(TcpGreeting, aCrowdOfSilentConnectionsKeepsNobodyOut) {
  std::vector<RawPeer> crowd;
  for (int i = 0; i < 300; ++i) crowd.push_back(RawPeer::dialTo(link_->address()));
  RawPeer peer = welcomePeer();
  expectServed(peer);
  EXPECT_TRUE(crowd.front().isHungUpOn()) << "the oldest connections make room";
}

TEST_F(TcpGreeting, aGreetingThatComesByteByByteIsUnderstood) {
  RawPeer peer = RawPeer::dialTo(link_->address());
  for (char byte : greeting()) ASSERT_TRUE(peer.say({byte}));
  expectServed(peer);
}

}  // namespace hmc::tcp
