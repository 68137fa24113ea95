#include <gtest/gtest.h>

#include <functional>
#include <sstream>

#include "peer.h"

namespace hmc::test {
namespace {

struct Counts {
  int fds = 0, threads = 0, mappings = 0;
};

Counts countsOf(Peer& peer) {
  Counts counts;
  std::istringstream(peer.ask("count").text) >> counts.fds >> counts.threads >> counts.mappings;
  return counts;
}

std::ostream& operator<<(std::ostream& out, const Counts& counts) {
  return out << counts.fds << " descriptors, " << counts.threads << " threads, " << counts.mappings
             << " mappings";
}

// The allocator and cached thread stacks come and go; a mapping per cycle would be many more.
constexpr int kMappingSlack = 40;
constexpr int kCycles = 200;

bool isBackAt(const Counts& now, const Counts& before) {
  return now.fds <= before.fds && now.threads <= before.threads &&
         now.mappings <= before.mappings + kMappingSlack;
}

class Leaks : public testing::TestWithParam<const char*> {
 protected:
  const std::string type = GetParam();
  Peer server, client;

  void expectNoneAfter(const std::function<void()>& cycle) {
    ASSERT_TRUE(server.serve(1 << 20).ok);
    ASSERT_TRUE(client.allocate(1 << 20).ok);
    for (int warm = 0; warm < 10; ++warm) cycle();
    // Let the last of them settle before the count is taken.
    Counts serverBefore = settled(server);
    Counts clientBefore = settled(client);
    for (int i = 0; i < kCycles && !HasFailure(); ++i) cycle();
    EXPECT_TRUE(eventually([&] { return isBackAt(countsOf(server), serverBefore); }))
        << "server: " << countsOf(server) << "; before: " << serverBefore;
    EXPECT_TRUE(eventually([&] { return isBackAt(countsOf(client), clientBefore); }))
        << "client: " << countsOf(client) << "; before: " << clientBefore;
  }

  static Counts settled(Peer& peer) {
    Counts last = countsOf(peer);
    int same = 0;
    eventually([&] {
      Counts now = countsOf(peer);
      same = now.fds == last.fds && now.threads == last.threads ? same + 1 : 0;
      last = now;
      return same >= 20;
    });
    return last;
  }
};

TEST_P(Leaks, areAbsentFromConnectingAndDisconnecting) {
  expectNoneAfter([&] {
    Reply connected = client.connectTo(server, type);
    ASSERT_TRUE(connected.ok) << connected;
    Reply put = client.transfer("put", server, 0, 0, 4096, type);
    ASSERT_TRUE(put.ok) << put;
    ASSERT_TRUE(client.ask("disconnect " + server.address() + " " + type).ok);
  });
}

TEST_P(Leaks, areAbsentFromWholeCommunicators) {
  expectNoneAfter([&] {
    ASSERT_TRUE(client.allocate(1 << 20).ok);
    Reply connected = client.connectTo(server, type);
    ASSERT_TRUE(connected.ok) << connected;
    Reply put = client.transfer("put", server, 0, 0, 4096, type);
    ASSERT_TRUE(put.ok) << put;
  });
}

INSTANTIATE_TEST_SUITE_P(Transport, Leaks, testing::Values("IPC", "TCP"),
                         [](const auto& one) { return one.param; });

}  // namespace
}  // namespace hmc::test
