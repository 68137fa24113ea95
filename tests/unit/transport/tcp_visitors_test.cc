#include "unit/transport/tcp_fixture.h"

// Who knocks at a tcp listener without being a peer.
namespace hmc::tcp {

using TcpVisitors = TcpTarget;

TEST_F(TcpVisitors, aPeerWithTheTokenIsServed) {
  RawPeer peer = welcomePeer();
  expectServed(peer);
}

TEST_F(TcpVisitors, garbageIsHungUpOn) {
  RawPeer garbage = RawPeer::dialTo(link_->address());
  garbage.say("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_TRUE(garbage.isHungUpOn());
  RawPeer peer = welcomePeer();
  expectServed(peer);
}

TEST_F(TcpVisitors, aWrongTokenIsHungUpOn) {
  std::string wrong = token();
  wrong[kTokenSize - 1] = static_cast<char>(wrong[kTokenSize - 1] ^ 1);
  RawPeer visitor = RawPeer::dialTo(link_->address());
  visitor.say(greetingBytes(wrong, Role::forward) +
              requestBytes(RequestKind::put, 1, regionId(), 0, 1) + "!");
  EXPECT_TRUE(visitor.isHungUpOn());
  EXPECT_EQ(memory_[0], '.');
}

TEST_F(TcpVisitors, anUnknownRoleOrMagicIsHungUpOn) {
  RawPeer role = RawPeer::dialTo(link_->address());
  role.say(greetingBytes(token(), static_cast<Role>(9)));
  EXPECT_TRUE(role.isHungUpOn());
  std::string bytes = greetingBytes(token(), Role::forward);
  bytes[0] = 'X';
  RawPeer magic = RawPeer::dialTo(link_->address());
  magic.say(bytes);
  EXPECT_TRUE(magic.isHungUpOn());
}

TEST_F(TcpVisitors, theTokenOfAClosedLinkIsNotWelcomeAnyMore) {
  const std::string address = link_->address();
  const std::string greeting = greetingBytes(token(), Role::forward);
  RawPeer early = welcomePeer();
  expectServed(early);
  link_->close(Status(Code::cancelled, "closed by the test"));
  EXPECT_TRUE(early.isHungUpOn());
  RawPeer late = RawPeer::dialTo(address);
  late.say(greeting);
  EXPECT_TRUE(late.isHungUpOn());
}

TEST_F(TcpVisitors, silenceIsHungUpOnInTheEnd) {
  start({.patience = std::chrono::milliseconds(100)});
  RawPeer silent = RawPeer::dialTo(link_->address());
  RawPeer halting = RawPeer::dialTo(link_->address());
  halting.say(greetingBytes(token(), Role::forward).substr(0, 10));
  EXPECT_TRUE(silent.isHungUpOn());
  EXPECT_TRUE(halting.isHungUpOn());
}

TEST_F(TcpVisitors, aCrowdOfSilentVisitorsKeepsNobodyOut) {
  std::vector<RawPeer> crowd;
  for (int i = 0; i < 300; ++i) crowd.push_back(RawPeer::dialTo(link_->address()));
  RawPeer peer = welcomePeer();
  expectServed(peer);
  EXPECT_TRUE(crowd.front().isHungUpOn()) << "the oldest visitors make room";
}

TEST_F(TcpVisitors, aGreetingThatComesByteByByteIsUnderstood) {
  RawPeer peer = RawPeer::dialTo(link_->address());
  for (char byte : greetingBytes(token(), Role::forward)) ASSERT_TRUE(peer.say({byte}));
  expectServed(peer);
}

}  // namespace hmc::tcp
