#include <filesystem>
#include <future>

#include "memory/backends.h"
#include "node/node_impl.h"
#include "transport/tcp/address.h"
#include "unit/node/bare_peer.h"
#include "unit/node/node_pair.h"

// A data link breaks while the peers live: the one that notices makes another, and the other one
// must not keep the old ones.
namespace hmc {
namespace {

using namespace std::chrono_literals;

constexpr size_t kLinkedSize = 4096;
constexpr int kBreaks = 8;

std::shared_ptr<LocalMemory> allocateLinked(NodeImpl& node, const std::string& name) {
  Region region = must(hostBackend().allocate(0, kLinkedSize));
  return must(node.registerMemory(name, region, Access::readWrite, /*owned=*/true));
}

size_t openDescriptors() {
  namespace fs = std::filesystem;
  return static_cast<size_t>(
      std::distance(fs::directory_iterator("/proc/self/fd"), fs::directory_iterator()));
}

class BrokenLinks : public testing::TestWithParam<const char*> {};

TEST_P(BrokenLinks, areForgottenAtBothEnds) {
  auto a = must(NodeImpl::create(named("a", {GetParam()})));
  auto b = must(NodeImpl::create(named("b", {GetParam()})));
  auto toA = must(b->connect(must(a->listen("tcp://127.0.0.1:0")), {}, 10s));
  auto toB = must(a->waitForPeer([](const PeerState&) { return true; }, "b", 10s));
  auto ofA = allocateLinked(*a, "of a");
  auto ofB = allocateLinked(*b, "of b");
  size_t before = 0;
  for (int round = 0; round < kBreaks; ++round) {
    auto remote = must(b->open(toA, "of a", {}, 10s));
    ASSERT_TRUE(remote->run(OpKind::put, *ofB, 0, 0, kLinkedSize, 10s).ok());
    if (round == 1) before = openDescriptors();
    must(toA->link(0, 10s))->close(Status(Code::disconnected, "the cable is out"));
    EXPECT_EQ(remote->run(OpKind::put, *ofB, 0, 0, kLinkedSize, 10s).code(), Code::disconnected);
  }
  must(b->open(toA, "of a", {}, 10s));
  // A closed connection has to be noticed first.
  for (Deadline deadline = 10s; openDescriptors() > before && !deadline.passed();)
    std::this_thread::yield();
  EXPECT_LE(openDescriptors(), before);
  auto back = a->open(toB, "of b", {}, 10s);
  ASSERT_TRUE(back.ok()) << back.status().toString();
  const Status put = (*back)->run(OpKind::put, *ofA, 0, 0, kLinkedSize, 10s);
  EXPECT_TRUE(put.ok()) << put.toString();
  b->close();
  a->close();
}

INSTANTIATE_TEST_SUITE_P(Transports, BrokenLinks, testing::Values("tcp", "ipc"));

// Accepts every link and hears which are dropped.
class LinkedPeer : public BarePeer {
 public:
  using BarePeer::BarePeer;

  void answer(const std::shared_ptr<control::Channel>&, uint16_t method, std::string_view request,
              control::Channel::Answered reply) override {
    if (method == kOpenLink) return reply(tcp::Address{}.encode());
    if (method == kDropLink) dropped_.set_value(std::string(request));
    reply(std::string());
  }
  std::string dropped() {
    auto request = dropped_.get_future();
    return request.wait_for(30s) == std::future_status::ready ? request.get() : "nothing";
  }

 private:
  std::promise<std::string> dropped_;
};

// Before anybody uses it again: what the peer hears later does not renew its lease.
TEST(BrokenLink, isToldToThePeerWhenItEnds) {
  auto node = must(NodeImpl::create(named("node", {"tcp"})));
  const std::string listener = must(node->listen("tcp://127.0.0.1:0"));
  LinkedPeer peer("peer");
  auto channel = peer.connect(listener);
  auto state = must(node->waitForPeer([](const PeerState&) { return true; }, "peer", 10s));
  auto link = must(state->link(0, 10s));
  const std::string address = link->address();
  link->close(Status(Code::disconnected, "the cable is out"));
  EXPECT_NE(peer.dropped().find(address), std::string::npos);
  link.reset();
  channel->close(Status());
  node->close();
}

}  // namespace
}  // namespace hmc
