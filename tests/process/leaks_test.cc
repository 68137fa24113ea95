#include <gtest/gtest.h>

#include <hmc/node.h>

#include <functional>
#include <iostream>
#include <sstream>

#include "peer.h"
#include "usable.h"

namespace hmc::test {
namespace {

struct Counts {
  int fds = 0, threads = 0, mappings = 0;
  long privateKiB = 0;
};

Counts countsOf(Peer& peer) {
  Counts counts;
  std::istringstream(peer.ask("count").text) >> counts.fds >> counts.threads >> counts.mappings >>
      counts.privateKiB;
  return counts;
}

std::ostream& operator<<(std::ostream& out, const Counts& counts) {
  return out << counts.fds << " descriptors, " << counts.threads << " threads, " << counts.mappings
             << " mappings, " << counts.privateKiB << " KiB of its own";
}

// The allocator and cached thread stacks come and go; a mapping per cycle would be many more.
constexpr int kMappingSlack = 40;
// Sanitizers keep freed memory.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr long kMemorySlack = long{1} << 30;
#else
constexpr long kMemorySlack = 1024;
#endif

bool isBackAt(const Counts& now, const Counts& before) {
  return now.fds <= before.fds && now.threads <= before.threads &&
         now.mappings <= before.mappings + kMappingSlack &&
         now.privateKiB <= before.privateKiB + kMemorySlack;
}

struct Kind {
  std::string name, type;
  Process::Environment environment;
};

// UCX takes a tenth of a second to connect, and more where others are busy.
int usualCycles(const std::string& type, int usual) {
  return cyclesOr(type == "UCX" ? usual / 10 : usual);
}

class Leaks : public testing::TestWithParam<Kind> {
 protected:
  const std::string type = GetParam().type;
  Peer server{GetParam().environment}, client{GetParam().environment};

  void SetUp() override {
    if (type != "UCX") return;
    if (const auto why = whyNotUsable("ucx"); !why.empty()) GTEST_SKIP() << why;
  }

  void connectAndPut(Peer& from) {
    Reply connected = from.connectTo(server, type);
    ASSERT_TRUE(connected.ok) << connected;
    Reply put = from.transfer("put", server, 0, 0, 4096, type);
    ASSERT_TRUE(put.ok) << put;
  }

  void expectNoneAfter(int cycles, const std::function<void()>& cycle) {
    ASSERT_TRUE(server.serve(1 << 20).ok);
    ASSERT_TRUE(client.allocate(1 << 20).ok);
    for (int warm = 0; warm < 2 + cycles / 10 && !HasFailure(); ++warm) cycle();
    // Let the last of them settle before the count is taken.
    Counts serverBefore = settled(server);
    Counts clientBefore = settled(client);
    for (int i = 0; i < cycles && !HasFailure(); ++i) cycle();
    EXPECT_TRUE(eventually([&] { return isBackAt(countsOf(server), serverBefore); }))
        << "server: " << countsOf(server) << "; before: " << serverBefore;
    EXPECT_TRUE(eventually([&] { return isBackAt(countsOf(client), clientBefore); }))
        << "client: " << countsOf(client) << "; before: " << clientBefore;
    std::cout << cycles << " cycles. Server: " << serverBefore << ", then " << countsOf(server)
              << ". Client: " << clientBefore << ", then " << countsOf(client) << "\n";
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
  expectNoneAfter(usualCycles(type, 100), [&] {
    connectAndPut(client);
    ASSERT_TRUE(client.ask("disconnect " + server.address() + " " + type).ok);
  });
}

TEST_P(Leaks, areAbsentFromWholeCommunicators) {
  expectNoneAfter(usualCycles(type, 100), [&] {
    ASSERT_TRUE(client.allocate(1 << 20).ok);
    connectAndPut(client);
  });
}

// A process that is killed leaves nothing at those that it was connected to.
TEST_P(Leaks, areAbsentFromPeersThatAreKilled) {
  expectNoneAfter(usualCycles(type, 20), [&] {
    Peer other(GetParam().environment);
    ASSERT_TRUE(other.allocate(1 << 20).ok);
    connectAndPut(other);
    Reply loop = other.ask("loop put " + server.address() + " 1048576 " + type);
    ASSERT_TRUE(loop.ok) << loop;
    other.kill();
  });
}

std::vector<Kind> kinds() {
  const Process::Environment tls{{"HMC_TLS", "required"}, {"HMC_SECRET", "of the leaks"}};
  return {{"ipc", "IPC", {}}, {"tcp", "TCP", {}}, {"tcpTls", "TCP", tls}, {"ucx", "UCX", {}}};
}

INSTANTIATE_TEST_SUITE_P(Transport, Leaks, testing::ValuesIn(kinds()),
                         [](const auto& one) { return one.param.name; });

}  // namespace
}  // namespace hmc::test
