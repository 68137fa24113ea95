#include "api/sessions.h"

#include <gtest/gtest.h>

#include <thread>

#include "unit/node/bare_peer.h"

namespace hmc {
namespace {

using namespace std::chrono_literals;

TEST(Sessions, forgetsTheOldestOfTooManyMessagesOfPeersThatLeft) {
  auto sessions = std::make_shared<Sessions>();
  auto node = must(NodeImpl::create(named("server", {"tcp"}), makeTransports, sessions));
  const std::string listener = must(node->listen("tcp://127.0.0.1:0"));
  const std::string part(10 << 20, 't');
  for (int i = 0; i < 4; ++i) {
    BarePeer visitor(std::to_string(i));
    auto channel = visitor.connect(listener);
    for (int j = 0; j < 2; ++j) ASSERT_TRUE(channel->send(MessageKind::tag, 0, part, 30s).ok());
    (void)channel->call(kProbe, "", 30s);  // both have arrived
    channel->close(Status());
    while (!node->peers().empty()) std::this_thread::yield();
  }
  auto called = [](const std::string& name) {
    return [name](const PeerState& peer) { return peer.channel().peer().name == name; };
  };
  EXPECT_FALSE(sessions->departed(called("0")));
  for (const char* name : {"1", "2", "3"}) EXPECT_TRUE(sessions->departed(called(name))) << name;
  node->close();
}

}  // namespace
}  // namespace hmc
