#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstdlib>
#include <thread>
#include <vector>

#include "control/frame.h"
#include "control/handshake.h"
#include "control/socket.h"
#include "fakes/resident.h"
#include "test_peer.h"

// Strangers who take a listener's places, in four ways. HMC_FLOOD says how many of them; what they
// cost a new peer, and one that has been let in, is printed and not judged, because it depends on
// the machine.

namespace hmc::control {
namespace {

using namespace test;
using hmc::test::residentKilobytes;
using std::chrono::steady_clock;

constexpr const char* kSecret = "hush";

struct Kind {
  const char* name;
  std::string firstWord;  // what each of them says
};

std::string helloOf(const std::string& secret) {
  return frameBytes(FrameType::hello, DiallerHandshake(secret, "").hello());
}

// A handshake from beginning to end by who does not know the secret: the second word cannot fit.
std::string wrongHandshake() {
  DiallerHandshake stranger("guess", "");
  return frameBytes(FrameType::hello, stranger.hello()) +
         frameBytes(FrameType::ident, stranger.ident({std::string(kIdSize, 'i'), false}));
}

int strangers() {
  const char* set = std::getenv("HMC_FLOOD");
  return set ? std::atoi(set) : 400;
}

double milliseconds(steady_clock::duration time) {
  return std::chrono::duration<double, std::milli>(time).count();
}

// The time that so many of a hundred do not exceed.
double percentile(std::vector<double> times, size_t percent) {
  std::sort(times.begin(), times.end());
  return times.empty() ? 0 : times[times.size() * percent / 100];
}

class Flood : public testing::TestWithParam<Kind> {
 protected:
  // How long a new peer takes until it is let in.
  double joining() {
    TestPeer peer("honest", kSecret);
    const auto began = steady_clock::now();
    auto channel = peer.connect(listener_);
    EXPECT_TRUE(channel.ok()) << channel.status().toString();
    return milliseconds(steady_clock::now() - began);
  }
  static double calling(Channel& channel) {
    const auto began = steady_clock::now();
    EXPECT_TRUE(channel.call(1, "", kPatience).ok());
    return milliseconds(steady_clock::now() - began);
  }
  Fd stranger() const {
    const SocketAddress to = resolve(*parseAddress(listener_), kPatience)->front();
    Fd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (fd) (void)connect(fd.get(), to.get(), to.size);
    return fd;
  }

  TestPeer server_{"server", kSecret};
  const std::string listener_ = server_.listen();
};

TEST_P(Flood, letsNewPeersInAndTakesLittleMemory) {
  rlimit files{};
  getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
  TestPeer known("known", kSecret);
  const auto channel = *known.connect(listener_);
  std::vector<double> usualJoins;
  for (int i = 0; i < 9; ++i) usualJoins.push_back(joining());
  std::vector<double> usualCalls;
  for (int i = 0; i < 500; ++i) usualCalls.push_back(calling(*channel));
  const size_t before = residentKilobytes();
  std::vector<double> calls;
  std::jthread caller([&](const std::stop_token& stop) {
    while (!stop.stop_requested()) calls.push_back(calling(*channel));
  });
  std::vector<Fd> crowd;
  for (int i = 0; i < strangers(); ++i) {
    crowd.push_back(stranger());
    if (!crowd.back()) break;
    const std::string& word = GetParam().firstWord;
    (void)!send(crowd.back().get(), word.data(), word.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  }
  const double first = joining();
  caller.request_stop();
  caller.join();
  std::printf("%s, %zu strangers: a new peer usually %.2f ms, behind them %.2f", GetParam().name,
              crowd.size(), percentile(usualJoins, 50), first);
  for (int i = 0; i < 5; ++i) std::printf(" %.2f", joining());
  std::printf("; a call usually %.3f ms (1 of 100 more than %.3f), meanwhile %.3f (%.3f)\n",
              percentile(usualCalls, 50), percentile(usualCalls, 99), percentile(calls, 50),
              percentile(calls, 99));
  const size_t grown = residentKilobytes() - std::min(before, residentKilobytes());
  EXPECT_LT(grown, 16u * 1024);
}

INSTANTIATE_TEST_SUITE_P(Kinds, Flood,
                         testing::Values(Kind{"silent", ""}, Kind{"slow", std::string(1, '\x1c')},
                                         Kind{"halfOpen", helloOf(kSecret)},
                                         Kind{"wrongSecret", wrongHandshake()}),
                         [](const auto& given) { return std::string(given.param.name); });

}  // namespace
}  // namespace hmc::control
