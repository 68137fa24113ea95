#include <gmock/gmock.h>
#include <sys/mman.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <vector>

#include "fakes/link_options.h"
#include "transport/verbs/verbs.h"

// What only a device can show. Without one these tests skip; `make test-rdma` brings one.
namespace hmc::verbs {
namespace {

using testing::HasSubstr;

constexpr std::chrono::seconds kPatience{60};

struct Side {
  std::unique_ptr<Transport> transport;
  std::unique_ptr<Link> link;
};

class VerbsDevice : public testing::Test {
 protected:
  void SetUp() override {
    auto here = create();
    if (!here.ok()) GTEST_SKIP() << here.status().message();
  }
  Side open(bool initiator, int channels) {
    Side side;
    auto transport = create({.channels = channels});
    EXPECT_TRUE(transport.ok()) << transport.status().toString();
    side.transport = *std::move(transport);
    auto link = side.transport->openLink(test::linkOptions(initiator));
    EXPECT_TRUE(link.ok()) << link.status().toString();
    side.link = *std::move(link);
    return side;
  }
  void connect(int ourChannels = 1, int theirChannels = 1) {
    a = open(true, ourChannels);
    b = open(false, theirChannels);
    ASSERT_TRUE(b.link->connect(a.link->address()).ok());
    ASSERT_TRUE(a.link->connect(b.link->address()).ok());
  }
  static Result<std::unique_ptr<Registration>> add(const Side& side, std::vector<char>& bytes,
                                                   Device device = {}) {
    return side.transport->registerRegion({bytes.data(), bytes.size(), device}, Access::readWrite);
  }
  static Status move(const Side& side, OpKind kind, void* local, const Registration& registration,
                     const RemoteMemory& remote, size_t size, size_t pieces = 1) {
    Completion completion(static_cast<uint32_t>(pieces));
    std::vector<Op> ops;
    for (size_t i = 0; i < pieces; ++i) {
      ops.push_back({kind, static_cast<char*>(local) + i * size, &registration, &remote, i * size,
                     size, &completion});
    }
    std::span<const Op> rest = ops;
    const Deadline deadline(kPatience);
    while (!deadline.passed() && !(rest.empty() && completion.done())) {
      rest = rest.subspan(side.link->post(rest));
      side.transport->progress(std::chrono::milliseconds(100));
    }
    EXPECT_TRUE(completion.done());
    return completion.status();
  }
  // A put of everything from `origin` to b, into memory that b calls one of `device`.
  void expectPut(const Side& origin, size_t piece, size_t pieces, Device device = {}) {
    std::vector<char> from(piece * pieces, 'x'), to(piece * pieces, 'y');
    auto local = add(origin, from);
    auto target = add(b, to, device);
    if (!target.ok() && !device.isHost()) GTEST_SKIP() << target.status().message();
    auto remote = origin.link->importKey((*target)->key(), kPatience, nullptr);
    ASSERT_TRUE(remote.ok()) << remote.status().toString();
    path = (*remote)->path();
    EXPECT_TRUE(move(origin, OpKind::put, from.data(), **local, **remote, piece, pieces).ok());
    EXPECT_EQ(from, to);
  }

  Side a, b;
  std::string path;  // of the last expectPut()
};

TEST_F(VerbsDevice, servesSidesWithDifferentNumbersOfChannels) {
  for (auto [ours, theirs] : {std::pair{1, 16}, {16, 1}, {3, 2}}) {
    for (Side* side : {&a, &b}) side->link.reset();
    connect(ours, theirs);
    expectPut(a, 1000, 100);
  }
}

// The pointer is the host's, so that a NIC can reach it and we can look; what we say of it makes
// the transport treat it as a device's.
TEST_F(VerbsDevice, readsAfterAPutIntoMemoryOfADevice) {
  connect();
  expectPut(a, 5, 1000, {DeviceKind::cuda, 0});
}

TEST_F(VerbsDevice, servesMemoryThatNobodyMayWrite) {
  connect();
  void* page = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(page, MAP_FAILED);
  std::memset(page, 'p', 4096);
  ASSERT_EQ(mprotect(page, 4096, PROT_READ), 0);
  auto target = b.transport->registerRegion({page, 4096, Device{}}, Access::read);
  ASSERT_TRUE(target.ok()) << target.status().toString();
  std::vector<char> to(4096, 'y');
  auto local = add(a, to);
  auto remote = a.link->importKey((*target)->key(), kPatience, nullptr);
  ASSERT_TRUE(remote.ok()) << remote.status().toString();
  EXPECT_TRUE(move(a, OpKind::get, to.data(), **local, **remote, 4096).ok());
  EXPECT_EQ(to, std::vector<char>(4096, 'p'));
  target->reset();
  munmap(page, 4096);
}

TEST_F(VerbsDevice, resetsAChannelAgainAndAgain) {
  connect(2, 2);
  std::vector<char> from(4096, 'x'), to(4096, 'y'), lost(4096, 'z');
  auto local = add(a, from);
  auto target = add(b, to);
  auto remote = a.link->importKey((*target)->key(), kPatience, nullptr);
  for (int round = 0; round < 20; ++round) {
    auto gone = add(b, lost);
    auto remoteGone = a.link->importKey((*gone)->key(), kPatience, nullptr);
    gone->reset();
    Status refused = move(a, OpKind::put, from.data(), **local, **remoteGone, 64, 8);
    EXPECT_EQ(refused.code(), Code::notFound) << refused.toString();
    EXPECT_THAT(refused.message(), HasSubstr("unregistered"));
    EXPECT_TRUE(move(a, OpKind::put, from.data(), **local, **remote, 64, 64).ok());
  }
  EXPECT_EQ(from, to);
  EXPECT_EQ(lost, std::vector<char>(4096, 'z'));
  EXPECT_GT(a.transport->counters().retries, 0u)
      << "the puts that were flushed with the refused one";
}

TEST_F(VerbsDevice, thatIsNotThereIsNamedWithThoseThatAre) {
  setenv("HMC_RDMA_DEVICES", "mlx5_77", 1);
  Status status = create().status();
  unsetenv("HMC_RDMA_DEVICES");
  EXPECT_EQ(status.code(), Code::unsupported);
  EXPECT_THAT(status.message(), HasSubstr("mlx5_77"));
}

TEST_F(VerbsDevice, keepsToTheSmallerPacketsOfEitherSide) {
  setenv("HMC_RDMA_MTU", "256", 1);
  Side small = open(true, 1);
  unsetenv("HMC_RDMA_MTU");
  b = open(false, 1);
  ASSERT_TRUE(b.link->connect(small.link->address()).ok());
  ASSERT_TRUE(small.link->connect(b.link->address()).ok());
  expectPut(small, 100000, 1);
  small.link.reset();
}

// Two names, separated by a comma.
std::string twoDevices() {
  const char* names = std::getenv("HMC_TEST_TWO_RDMA_DEVICES");
  return names ? names : "";
}

uint64_t packetsSent(const std::string& device) {
  std::ifstream file("/sys/class/infiniband/" + device + "/ports/1/hw_counters/sent_pkts");
  uint64_t count = 0;
  file >> count;
  return count;
}

TEST_F(VerbsDevice, sharesOnePeerWithAnother) {
  const std::string names = twoDevices();
  if (names.empty()) GTEST_SKIP() << "HMC_TEST_TWO_RDMA_DEVICES names no devices";
  setenv("HMC_RDMA_DEVICES", names.c_str(), 1);
  connect(2, 2);
  unsetenv("HMC_RDMA_DEVICES");
  const std::string first = names.substr(0, names.find(','));
  const std::string second = names.substr(names.find(',') + 1);
  const uint64_t before[] = {packetsSent(first), packetsSent(second)};
  expectPut(a, 1 << 18, 16);
  EXPECT_THAT(path, HasSubstr(first + "+" + second));
  EXPECT_GT(packetsSent(first), before[0] + 500);
  EXPECT_GT(packetsSent(second), before[1] + 500);
}

}  // namespace
}  // namespace hmc::verbs
