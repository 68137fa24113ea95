#include <gtest/gtest.h>

#include <hmc/node.h>

#include <random>

#include "process.h"
#include "usable.h"

// An open that runs into its deadline leaves a connection half made, and then the Node goes. Both
// processes live on. UCX 1.13 aborts one that has an answer to send over such a connection.
namespace hmc::test {
namespace {

using namespace std::chrono_literals;

class OpenTimeout : public testing::TestWithParam<std::string> {};

TEST_P(OpenTimeout, endsNeitherProcess) {
  NodeOptions options;
  options.transports = {GetParam()};
  if (const auto why = whyNotUsable(GetParam()); !why.empty()) GTEST_SKIP() << why;
  Process target({HMC_TEST_TARGET});
  const Reply listening = target.ask("node " + GetParam() + " 10000");
  ASSERT_TRUE(listening.ok) << listening;
  ASSERT_TRUE(target.ask("region allocated 4096").ok);
  std::mt19937_64 random(1);
  std::chrono::microseconds usual = 1s;
  int late = 0;
  for (int i = 0, cycles = cyclesOr(25); i < cycles; ++i) {
    Node node = Node::create(options).value();
    hmc::Peer peer = node.connect(listening.text, kPatience).value();
    // The first few show how long it takes.
    const bool cut = i >= 3;
    const auto timeout = cut ? std::chrono::microseconds(random() % (1 + usual.count())) : 60s;
    const auto begin = std::chrono::steady_clock::now();
    const auto opened = peer.open("memory", timeout);
    if (!cut) {
      ASSERT_TRUE(opened.ok()) << opened.status().toString();
      usual = std::min(usual, std::chrono::duration_cast<std::chrono::microseconds>(
                                  std::chrono::steady_clock::now() - begin));
    }
    late += opened.ok() ? 0 : 1;
  }
  RecordProperty("late", late);
  EXPECT_TRUE(target.ask("changed 0 4096 0").ok) << "the target has ended";
}

INSTANTIATE_TEST_SUITE_P(Transport, OpenTimeout, testing::Values("ipc", "tcp", "ucx"),
                         [](const auto& one) { return one.param; });

}  // namespace
}  // namespace hmc::test
