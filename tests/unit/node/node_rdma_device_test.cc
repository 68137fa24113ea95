#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>

#include "fakes/fake_libibverbs.h"
#include "memory/backends.h"
#include "memory/copy.h"
#include "unit/node/node_pair.h"

// Device memory over verbs: on the fake libibverbs, which reaches it through its dma-buf alone, and
// on a fake of the accelerator's driver.
namespace hmc {
namespace {

using test::FakeRegistering;
using testing::HasSubstr;
using testing::Not;

constexpr size_t kRdmaSize = (size_t{3} << 20) + 10;
constexpr size_t kInside = 5003;  // neither the begin of an allocation nor of a page

class NodeRdmaDevice : public testing::Test {
 protected:
  void SetUp() override {
    must(Node::create(named("probe", {"verbs"})));
    auto* registering = test::fakeVerbs<FakeRegistering*()>("fakeRegistering");
    if (!registering) GTEST_SKIP() << "not the fake libibverbs: set LD_LIBRARY_PATH to its folder";
    fake_ = registering();
    *fake_ = FakeRegistering();
    here_ = allocate(kGpu);
    there_ = allocate(kOtherGpu);
  }
  void TearDown() override {
    if (!fake_) return;
    release(here_);
    release(there_);
    *fake_ = FakeRegistering();
  }
  // In the middle of an allocation.
  static Region allocate(Device device) {
    auto* backend = must(findBackend(device));
    return must(backend->allocate(device.index, kInside + kRdmaSize)).slice(kInside, kRdmaSize);
  }
  static void release(const Region& region) {
    EXPECT_TRUE(must(findBackend(region.device))->release(region.at(0) - kInside).ok());
  }
  static std::vector<char> pattern(int seed) {
    std::vector<char> bytes(kRdmaSize);
    std::iota(bytes.begin(), bytes.end(), static_cast<char>(seed));
    return bytes;
  }
  static void write(const Region& region, std::vector<char> bytes) {
    ASSERT_TRUE(copy(region, {bytes.data(), bytes.size(), {}}).ok());
  }
  static std::vector<char> read(const Region& region) {
    std::vector<char> bytes(region.size);
    EXPECT_TRUE(copy({bytes.data(), bytes.size(), {}}, region).ok());
    return bytes;
  }
  LocalRegion registerTarget(Node& node) const {
    return must(node.registerMemory("target", there_.ptr, kRdmaSize));
  }
  LocalRegion registerLocal(Node& node) const {
    return must(node.registerMemory("local", here_.ptr, kRdmaSize));
  }
  // A put and a get of everything.
  void exchange(const RemoteRegion& remote, const LocalRegion& local) const {
    write(here_, pattern(5));
    Status put = remote.put(local, 0, 0, kRdmaSize);
    ASSERT_TRUE(put.ok()) << put.toString();
    EXPECT_EQ(read(there_), pattern(5));
    write(there_, pattern(77));
    Status get = remote.get(local, 0, 0, kRdmaSize);
    ASSERT_TRUE(get.ok()) << get.toString();
    EXPECT_EQ(read(here_), pattern(77));
  }
  static std::string explained(const Peer& peer) {
    for (const auto& path : peer.explain()) {
      if (path.transport == "verbs") return path.reason;
    }
    return "";
  }

  FakeRegistering* fake_ = nullptr;
  Region here_;
  Region there_;
};

TEST_F(NodeRdmaDevice, memoryOfBothSidesIsReachedWithoutStaging) {
  NodePair nodes({"verbs"});
  auto target = registerTarget(nodes.a);
  auto local = registerLocal(nodes.b);
  EXPECT_EQ(fake_->lastDmabuf.fd, -1) << "nobody has used it yet";
  auto remote = must(nodes.toA.open("target"));
  EXPECT_THAT(remote.path(), Not(HasSubstr("staged")));
  EXPECT_EQ(fake_->lastDmabuf.length, kRdmaSize);
  const int opened = fake_->registered;
  exchange(remote, local);
  EXPECT_EQ(fake_->registered, opened + 1) << "our memory, and no slot of the host";
  EXPECT_GE(fake_->dmabufBytes, 4 * kRdmaSize) << "two transfers, two ends";
  EXPECT_THAT(explained(nodes.toA), Not(HasSubstr("staged")));
}

TEST_F(NodeRdmaDevice, memoryIsDeregisteredWithItsRegion) {
  NodePair nodes({"verbs"});
  auto target = registerTarget(nodes.a);
  auto local = std::make_unique<LocalRegion>(registerLocal(nodes.b));
  auto remote = must(nodes.toA.open("target"));
  ASSERT_TRUE(remote.put(*local, 0, 0, 100).ok());
  const int before = fake_->deregistered;
  local.reset();
  EXPECT_EQ(fake_->deregistered, before + 1);
}

TEST_F(NodeRdmaDevice, memoryThatNoNicReachesIsStagedAndExplainSaysWhy) {
  fake_->dmabufError = EOPNOTSUPP;
  NodePair nodes({"verbs"});
  auto target = registerTarget(nodes.a);
  auto local = registerLocal(nodes.b);
  testing::internal::CaptureStderr();
  auto remote = must(nodes.toA.open("target"));
  const std::string warning = testing::internal::GetCapturedStderr();
  EXPECT_THAT(warning, HasSubstr("slower path than it could be"));
  EXPECT_THAT(warning, HasSubstr("needs Linux 5.12"));
  EXPECT_EQ(remote.path(), "verbs (staged at the target)");
  exchange(remote, local);
  EXPECT_EQ(fake_->dmabufBytes, 0u);
  EXPECT_THAT(explained(nodes.toA),
              HasSubstr("staged at the target: cuda:1 memory cannot be registered"));
  EXPECT_THAT(explained(nodes.toA), HasSubstr("the driver of fake0:1 takes none"));
}

TEST_F(NodeRdmaDevice, onlyOurSideIsStagedWhereTheTargetIsReached) {
  NodePair nodes({"verbs"});
  auto target = registerTarget(nodes.a);
  auto local = registerLocal(nodes.b);
  auto remote = must(nodes.toA.open("target"));
  EXPECT_THAT(remote.path(), Not(HasSubstr("staged")));
  fake_->dmabufError = EOPNOTSUPP;
  exchange(remote, local);
  EXPECT_GE(fake_->dmabufBytes, 2 * kRdmaSize) << "the target's";
}

TEST_F(NodeRdmaDevice, twoNicsShareTheMemoryOfADevice) {
  NodeOptions options = named("a", {"verbs"});
  options.channels = 2;
  Node a = must(Node::create(options));
  options.name = "b";
  Node b = must(Node::create(options));
  Peer toA = must(b.connect(must(a.listen("tcp://127.0.0.1:0"))));
  auto target = registerTarget(a);
  auto local = registerLocal(b);
  const int before = fake_->registered;
  auto remote = must(toA.open("target"));
  EXPECT_THAT(remote.path(), HasSubstr("fake0+fake1"));
  exchange(remote, local);
  EXPECT_GE(fake_->registered, before + 4) << "each memory with each NIC";
}

}  // namespace
}  // namespace hmc
