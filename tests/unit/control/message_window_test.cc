#include <gtest/gtest.h>

#include "raw_peer.h"
#include "test_peer.h"

// Messages that nobody receives make their sender wait; they do not fill the receiver's memory.

namespace hmc::control {
namespace {

using namespace test;

// Through the ring, or through the socket.
class MessageWindow : public testing::TestWithParam<bool> {
 protected:
  static ControlOptions options(bool ring) {
    ControlOptions options;
    options.ring = ring;
    return options;
  }
  void SetUp() override {
    auto dialled = client_.connect(server_.listen());
    ASSERT_TRUE(dialled.ok()) << dialled.status().toString();
    mine_ = *dialled;
    theirs_ = server_.events.waitJoined();
    settle(*mine_, *theirs_);
  }
  Status send(std::chrono::milliseconds timeout) const {
    return mine_->send(MessageKind::tag, 0, megabyte_, timeout);
  }

  const std::string megabyte_ = std::string(1 << 20, 'm');
  TestPeer server_{options(GetParam())};
  TestPeer client_{options(GetParam())};
  std::shared_ptr<Channel> mine_;
  std::shared_ptr<Channel> theirs_;
};

TEST_P(MessageWindow, fullMakesTheSenderWaitUntilSomebodyReceives) {
  int sent = 0;
  for (Status status; status.ok() && sent < 100; ++sent)
    status = send(sent < 60 ? std::chrono::milliseconds(kPatience) : std::chrono::milliseconds(50));
  EXPECT_LT(sent, 100);
  EXPECT_LE(theirs_->unreadBytes(), size_t{70} << 20);
  for (int i = 0; i < 20; ++i)
    EXPECT_EQ(receiveText(*theirs_, MessageKind::tag).size(), megabyte_.size());
  EXPECT_TRUE(send(kPatience).ok());
  EXPECT_TRUE(theirs_->status().ok());
}

INSTANTIATE_TEST_SUITE_P(Ways, MessageWindow, testing::Bool());

TEST(MessageWindow, aSenderThatDoesNotWaitLosesItsChannel) {
  for (auto kind : {MessageKind::tag, MessageKind::note}) {
    TestPeer server("server");
    RawPeer peer(server.listen());
    ASSERT_TRUE(peer.join("raw"));
    auto channel = server.events.waitJoined();
    const std::string body(kLargestMessage, 'b');
    const auto header = frameHeader(FrameType::message, static_cast<uint8_t>(kind), 0, body);
    for (int i = 0; i < 5 && channel->status().ok(); ++i) {
      (void)peer.say(std::string_view(header.data(), header.size()));
      (void)peer.say(std::string_view(body));
    }
    EXPECT_FALSE(server.events.waitLeft().ok());
  }
}

}  // namespace
}  // namespace hmc::control
