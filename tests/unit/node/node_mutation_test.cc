#include <gtest/gtest.h>

#include <cstdlib>

#include "fakes/resident.h"
#include "unit/node/mutating_proxy.h"
#include "unit/node/node_pair.h"

// Two Nodes, and between them somebody who changes what they say, with TLS and without. Whatever is
// changed on the control connection ends calls before their time is up, and nothing makes memory
// grow. Bytes that get lost in a data stream look like bytes that are late, without TLS; with it
// the proxy does not find the port of the data.

namespace hmc {
namespace {

using namespace std::chrono_literals;
using test::MutatingProxy;
using test::residentKilobytes;

// Sanitizers keep freed memory.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr size_t kGrowth = size_t{256} << 10;  // in kB
#else
constexpr size_t kGrowth = size_t{32} << 10;
#endif

constexpr std::chrono::seconds kSessionPatience{5};
// An acceptor gives a handshake that lost bytes 5 s.
constexpr std::chrono::seconds kConnectPatience{30};
constexpr size_t kSessionSize = 100000;

NodeOptions withShortLease(const std::string& name, TlsOptions::Mode tls) {
  NodeOptions options = named(name, {"tcp"});
  options.tls.mode = tls;
  options.secret = "a secret";
  options.heartbeat = 100ms;
  options.lease = 2s;
  return options;
}

class NodeMutation : public testing::TestWithParam<TlsOptions::Mode> {
 protected:
  struct Outcome {
    std::vector<Status> calls;
    bool mutated = false;
    size_t connections = 0;  // through the proxy
  };

  static NodeOptions options(const std::string& name) { return withShortLease(name, GetParam()); }
  static bool encrypts() { return GetParam() == TlsOptions::Mode::required; }

  // A client that comes through the proxy: everything that peers say to each other, once.
  Outcome visit(const MutatingProxy::Mutation& mutation) {
    Outcome outcome;
    MutatingProxy proxy(port_, mutation);
    const auto passed = [&](const Status& status) {
      outcome.calls.push_back(status);
      return status.ok();
    };
    {
      Node client = must(Node::create(options("client")));
      const LocalRegion local = must(client.allocate("local", kSessionSize));
      fill(local, 1);
      auto peer =
          client.connect("tcp://127.0.0.1:" + std::to_string(proxy.port()), kConnectPatience);
      if (passed(peer.status())) {
        passed(peer->notify("a note", kSessionPatience));
        auto region = peer->open("memory", kSessionPatience);
        if (passed(region.status())) {
          passed(region->put(local, 0, 0, kSessionSize, kSessionPatience));
          passed(region->get(local, 0, 0, kSessionSize, kSessionPatience));
        }
        passed(peer->probe(kSessionPatience).status());
      }
    }
    outcome.mutated = proxy.hasMutated();
    outcome.connections = proxy.accepted();
    return outcome;
  }

  void expectServed() {
    Node honest = must(Node::create(options("honest")));
    const LocalRegion local = must(honest.allocate("local", 4096));
    RemoteRegion region = must(must(honest.connect(listener_)).open("memory"));
    EXPECT_TRUE(region.put(local, 0, 0, 4096).ok());
  }

  Node server_ = must(Node::create(options("server")));
  const std::string listener_ = must(server_.listen("tcp://127.0.0.1:0"));
  const uint16_t port_ =
      static_cast<uint16_t>(std::stoi(listener_.substr(listener_.rfind(':') + 1)));
  const LocalRegion memory_ = must(server_.allocate("memory", kSessionSize));
};

MutatingProxy::Mutation mutationOf(uint64_t seed, bool encrypted) {
  std::mt19937_64 random(seed);
  MutatingProxy::Mutation mutation;
  mutation.kind = static_cast<MutatingProxy::Kind>(seed % 6);
  mutation.connection = encrypted ? 0 : random() % 3;
  mutation.toAcceptor = random() % 2 == 0;
  // What a control connection carries, and either direction of a stream.
  mutation.after = random() % (mutation.connection == 0 ? 700 : 300);
  mutation.seed = random();
  return mutation;
}

TEST_P(NodeMutation, passesThroughAProxyThatChangesNothing) {
  const Outcome outcome = visit({});
  ASSERT_EQ(outcome.calls.size(), 6u);
  for (const Status& status : outcome.calls) EXPECT_TRUE(status.ok()) << status.toString();
  EXPECT_GE(outcome.connections, encrypts() ? 1u : 3u)
      << "the streams of the tcp link did not come through it";
}

// HMC_PROXY_ROUNDS for more of them.
TEST_P(NodeMutation, ofWhatTwoNodesSayEndsCallsInTimeAndGrowsNothing) {
  const char* set = std::getenv("HMC_PROXY_ROUNDS");
  const uint64_t rounds = set ? std::strtoull(set, nullptr, 10) : 18;
  const char* first = std::getenv("HMC_PROXY_FIRST");
  const uint64_t begin = first ? std::strtoull(first, nullptr, 10) : 0;
  visit({});
  const size_t before = residentKilobytes();
  uint64_t mutated = 0;
  uint64_t failed = 0;
  uint64_t timedOut = 0;
  for (uint64_t seed = begin; seed < begin + rounds; ++seed) {
    const MutatingProxy::Mutation mutation = mutationOf(seed, encrypts());
    const Outcome outcome = visit(mutation);
    mutated += outcome.mutated ? 1 : 0;
    bool anyFailed = false;
    for (const Status& status : outcome.calls) {
      const bool late = status.code() == Code::deadlineExceeded;
      EXPECT_TRUE(!late || mutation.connection > 0) << "seed " << seed << ": " << status.toString();
      timedOut += late ? 1 : 0;
      anyFailed = anyFailed || !status.ok();
    }
    failed += anyFailed ? 1 : 0;
    while (server_.nextNote(0s).ok()) continue;
  }
  expectServed();
  const size_t after = residentKilobytes();
  std::printf(
      "%lu of %lu sessions were changed, %lu had an error, %lu calls timed out, %zu kB then %zu "
      "kB\n",
      mutated, rounds, failed, timedOut, before, after);
  EXPECT_GT(mutated, rounds / 6);
  EXPECT_GT(failed, mutated / 4);
  EXPECT_LT(after, before + kGrowth);
}

INSTANTIATE_TEST_SUITE_P(Ways, NodeMutation,
                         testing::Values(TlsOptions::Mode::off, TlsOptions::Mode::required),
                         [](const auto& given) {
                           return given.param == TlsOptions::Mode::off ? "plain" : "tls";
                         });

}  // namespace
}  // namespace hmc
