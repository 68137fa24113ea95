#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <cstdlib>

#include "control/frame.h"
#include "control/handshake.h"
#include "control/socket.h"
#include "fakes/resident.h"
#include "test_peer.h"

// Strangers who take a listener's places, in four ways. HMC_FLOOD says how many of them; what they
// cost a new peer is printed and not judged, because it depends on the machine.

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
  double usual = 1e9;
  for (int i = 0; i < 5; ++i) usual = std::min(usual, joining());
  const size_t before = residentKilobytes();
  std::vector<Fd> crowd;
  for (int i = 0; i < strangers(); ++i) {
    crowd.push_back(stranger());
    if (!crowd.back()) break;
    const std::string& word = GetParam().firstWord;
    (void)!send(crowd.back().get(), word.data(), word.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  }
  std::printf("%s, %zu strangers: usually %.2f ms, behind them", GetParam().name, crowd.size(),
              usual);
  for (int i = 0; i < 5; ++i) std::printf(" %.2f", joining());
  const size_t grown = residentKilobytes() - std::min(before, residentKilobytes());
  std::printf(" ms, %zu kB\n", grown);
  EXPECT_LT(grown, 16u * 1024);
}

INSTANTIATE_TEST_SUITE_P(Kinds, Flood,
                         testing::Values(Kind{"silent", ""}, Kind{"slow", std::string(1, '\x1c')},
                                         Kind{"halfOpen", helloOf(kSecret)},
                                         Kind{"wrongSecret", wrongHandshake()}),
                         [](const auto& given) { return std::string(given.param.name); });

}  // namespace
}  // namespace hmc::control
