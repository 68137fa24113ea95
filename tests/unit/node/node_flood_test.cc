#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <atomic>
#include <thread>

#include "base/codec.h"
#include "control/frame.h"
#include "control/handshake.h"
#include "control/listener.h"
#include "node/node_impl.h"
#include "transport/tcp/address.h"
#include "unit/node/bare_peer.h"

// A peer that asks for more than anybody needs.

namespace hmc {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

class NodeFlood : public testing::Test {
 protected:
  // Asks so often without waiting for answers, then waits for all. Answers how many worked.
  int askAll(control::Channel& channel, uint16_t method, const std::string& request, int times) {
    std::atomic<int> worked = 0;
    for (int i = 0; i < times; ++i) {
      channel.ask(method, request, [&](const Result<std::string>& answer) {
        if (answer.ok()) {
          ++worked;
        } else {
          refusal_ = answer.status();
        }
      });
    }
    // Answers come in order.
    (void)channel.call(kProbe, "", 60s);
    return worked;
  }

  Node victim_ = must(Node::create(named("victim", {"tcp", "ipc"})));
  const std::string listener_ = must(victim_.listen("tcp://127.0.0.1:0"));
  BarePeer flooder_{"flooder"};
  Status refusal_;
};

TEST_F(NodeFlood, ofLinksEndsAtALimitAndDelaysNobodyWhenItsPeerLeaves) {
  auto channel = flooder_.connect(listener_);
  const std::string address = tcp::Address{}.encode();
  EXPECT_LE(askAll(*channel, kOpenLink, Writer().string("tcp").string(address).take(), 2000), 16);
  EXPECT_EQ(refusal_.code(), Code::exhausted) << refusal_.toString();
  EXPECT_THAT(refusal_.message(), HasSubstr("tcp"));
  channel->close(Status());
  Node honest = must(Node::create(named("honest", {"tcp"})));
  const LocalRegion memory = must(victim_.allocate("memory", 4096));
  EXPECT_TRUE(must(honest.connect(listener_)).open("memory").ok());
}

TEST_F(NodeFlood, ofNotesMakesItsSenderWaitAndThenFail) {
  const std::string megabyte(1 << 20, 'n');
  auto channel = flooder_.connect(listener_);
  Status status;
  int sent = 0;
  for (; status.ok() && sent < 100; ++sent)
    status = channel->send(MessageKind::note, 0, megabyte, sent < 60 ? 30s : 50ms);
  EXPECT_EQ(status.code(), Code::deadlineExceeded) << status.toString();
  EXPECT_THAT(status.message(), HasSubstr("had not received"));
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(victim_.nextNote().ok());
  EXPECT_TRUE(channel->send(MessageKind::note, 0, megabyte, 30s).ok());
}

// Each within what one peer may leave unread.
TEST_F(NodeFlood, ofPeersThatLeaveNotesBehindIsForgottenOldestFirst) {
  const std::string note(8 << 20, 'n');
  for (int i = 0; i < 12; ++i) {
    BarePeer peer("visitor");
    auto channel = peer.connect(listener_);
    ASSERT_TRUE(channel->send(MessageKind::note, 0, std::to_string(i), 30s).ok());
    ASSERT_TRUE(channel->send(MessageKind::note, 0, note, 30s).ok());
    (void)channel->call(kProbe, "", 30s);  // both have arrived
    channel->close(Status());
    while (!victim_.peers().empty()) std::this_thread::yield();
  }
  const auto oldest = must(victim_.nextNote());
  EXPECT_NE(oldest.bytes, "0");
  size_t left = oldest.bytes.size();
  for (auto next = victim_.nextNote(0s); next.ok(); next = victim_.nextNote(0s))
    left += next->bytes.size();
  EXPECT_LE(left, size_t{64} << 20);
  EXPECT_GE(left, size_t{48} << 20);
}

// A listener whose places strangers have taken, and then one with room.
TEST_F(NodeFlood, thatLeavesNoPlaceMakesAPeerDialAgain) {
  using namespace control;
  const Address any = must(parseAddress("tcp://127.0.0.1:0"));
  auto crowded = must(Listener::open(any, must(resolve(any, 60s))));
  const std::string address = crowded->address().toString();
  Node late = must(Node::create(named("late")));
  std::jthread refusing([&] {
    ASSERT_TRUE(waitReady(crowded->fd(), POLLIN, 60s));
    auto stream = socketStream(crowded->accept().socket);
    crowded.reset();
    EXPECT_TRUE(late.listen(address).ok());
    std::string hello(kFrameHeader, '\0');
    (void)readAll(*stream, hello.data(), hello.size(), "the dialler", 60s);
    hello.resize(DiallerHandshake("", "").hello().size());
    (void)readAll(*stream, hello.data(), hello.size(), "the dialler", 60s);
    const Status full = Status(Code::exhausted, "all places are taken");
    (void)writeAll(*stream, frameBytes(FrameType::refused, encodeStatus(full)), "the dialler", 60s);
  });
  const auto peer = victim_.connect(address, 60s);
  EXPECT_TRUE(peer.ok()) << peer.status().toString();
}

}  // namespace
}  // namespace hmc
