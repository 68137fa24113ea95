// Runs with HMC_COOKIE=none: peers without a secret have proven nothing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pthread.h>

#include <thread>
#include <vector>

#include "base/codec.h"
#include "fakes/inprocess_transport.h"
#include "node/node_impl.h"
#include "unit/node/bare_peer.h"

namespace hmc {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::Not;

std::string openRequest(const std::string& region) {
  return Writer().string(region).u32(1).string("tcp").take();
}

TEST(NodeUnproven, namesOfRegionsAreForThoseWhoKnowTheSecret) {
  for (const char* secret : {"", "hush"}) {
    NodeOptions options = named("owner", {"tcp"});
    options.secret = secret;
    Node owner = must(Node::create(options));
    auto region = must(owner.allocate("the payroll", 64));
    BarePeer peer("peer", secret);
    auto channel = peer.connect(must(owner.listen("tcp://127.0.0.1:0")));
    const Status status = channel->call(kOpenRegion, openRequest("lunch"), 30s).status();
    EXPECT_EQ(status.code(), Code::notFound);
    if (*secret == '\0') {
      EXPECT_THAT(status.message(), Not(HasSubstr("payroll")));
    } else {
      EXPECT_THAT(status.message(), HasSubstr("payroll"));
    }
  }
}

// Python would choke on it, and a log or a terminal could be told anything.
TEST(NodeUnproven, wordsOfAPeerAreText) {
  Node owner = must(Node::create(named("owner", {"tcp"})));
  BarePeer peer("na\xffme\n");
  auto channel = peer.connect(must(owner.listen("tcp://127.0.0.1:0")));
  const Peer there = must(owner.peer("na?me?"));
  const Status refused = there.open("\xff").status();
  EXPECT_EQ(refused.code(), Code::unsupported);
  channel->close(Status(Code::failed,
                        "\xfe"
                        "bye"));
  while (there.status().ok()) std::this_thread::yield();
  EXPECT_THAT(there.status().message(), HasSubstr("?bye"));
}

// Loading UCX changes the process.
TEST(NodeUnproven, aTransportThatChangesTheProcessIsNotForStrangers) {
  for (const char* secret : {"", "hush"}) {
    fakes::InProcessOptions fake;
    fake.name = "heavy";
    fake.onDemand = true;
    NodeOptions options = named("owner");
    options.secret = secret;
    auto wire = fakes::makeInProcessWire();
    auto owner =
        must(NodeImpl::create(options, [&](const auto&, const auto&) -> Result<TransportSet> {
          TransportSet set;
          set.ready.push_back(must(fakes::createInProcess(wire, fake)));
          return set;
        }));
    BarePeer peer("peer", secret);
    auto channel = peer.connect(must(owner->listen("tcp://127.0.0.1:0")));
    const auto request = Writer().string("heavy").string("no address").take();
    const bool stranger = *secret == '\0';
    EXPECT_EQ(channel->call(kOpenLink, request, 30s).status().code() == Code::permissionDenied,
              stranger);
    EXPECT_EQ(channel->call(kOpenStage, Writer().string("heavy").take(), 30s).ok(), !stranger);
    owner->close();
  }
}

// While it lives, no thread can be started: none has room for its stack.
class NoMoreThreads {
 public:
  NoMoreThreads() {
    pthread_getattr_default_np(&before_);
    pthread_attr_t greedy;
    pthread_attr_init(&greedy);
    pthread_attr_setstacksize(&greedy, size_t{1} << 46);
    EXPECT_EQ(pthread_setattr_default_np(&greedy), 0);
  }
  ~NoMoreThreads() { pthread_setattr_default_np(&before_); }

 private:
  pthread_attr_t before_;
};

TEST(NodeUnproven, aPeerCannotEndAProcessThatHasAllItsThreads) {
  Node owner = must(Node::create(named("owner", {"tcp"})));
  std::vector<char> large((size_t{64} << 20) + 1);
  auto region = must(owner.registerMemory("large", large.data(), large.size()));
  BarePeer peer("peer");
  auto channel = peer.connect(must(owner.listen("tcp://127.0.0.1:0")));
  sigset_t before, after;
  {
    const NoMoreThreads limit;
    pthread_sigmask(SIG_SETMASK, nullptr, &before);
    EXPECT_FALSE(Node::create(named("another")).ok());
    pthread_sigmask(SIG_SETMASK, nullptr, &after);
    EXPECT_FALSE(channel->call(kOpenRegion, openRequest("large"), 30s).ok());
  }
  for (int signal = 1; signal < SIGRTMAX; ++signal)
    EXPECT_EQ(sigismember(&before, signal), sigismember(&after, signal)) << signal;
  EXPECT_TRUE(channel->call(kOpenRegion, openRequest("large"), 30s).ok());
}

}  // namespace
}  // namespace hmc
