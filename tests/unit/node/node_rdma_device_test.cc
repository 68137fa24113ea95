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

constexpr size_t kSize = (size_t{3} << 20) + 10;
constexpr size_t kInside = 5003;  // neither the begin of an allocation nor of a page
const Device kGpu{DeviceKind::cuda, 0};
const Device kOtherGpu{DeviceKind::cuda, 1};

class NodeRdmaDevice : public testing::Test {
 protected:
  void SetUp() override {
    must(Node::create(named("probe", {"verbs"})));
    auto* registering = test::fakeVerbs<FakeRegistering*()>("fakeRegistering");
    if (!registering) GTEST_SKIP() << "not the fake libibverbs: set LD_LIBRARY_PATH to its folder";
    fake_ = registering();
    *fake_ = FakeRegistering();
  }
  void TearDown() override {
    if (fake_) *fake_ = FakeRegistering();
  }
  // `size` bytes in the middle of an allocation.
  static Region allocate(Device device, size_t size = kSize) {
    auto* backend = must(findBackend(device));
    return must(backend->allocate(device.index, kInside + size)).slice(kInside, size);
  }
  static void release(const Region& region) {
    EXPECT_TRUE(must(findBackend(region.device))->release(region.at(0) - kInside).ok());
  }
  static std::vector<char> pattern(int seed) {
    std::vector<char> bytes(kSize);
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
  // A put and a get of everything between these.
  static void exchange(const RemoteRegion& remote, const LocalRegion& local, const Region& here,
                       const Region& there) {
    write(here, pattern(5));
    Status put = remote.put(local, 0, 0, kSize);
    ASSERT_TRUE(put.ok()) << put.toString();
    EXPECT_EQ(read(there), pattern(5));
    write(there, pattern(77));
    Status get = remote.get(local, 0, 0, kSize);
    ASSERT_TRUE(get.ok()) << get.toString();
    EXPECT_EQ(read(here), pattern(77));
  }
  std::string explained() {
    for (const auto& path : nodes_->toA.explain()) {
      if (path.transport == "verbs") return path.reason;
    }
    return "";
  }

  FakeRegistering* fake_ = nullptr;
  std::unique_ptr<NodePair> nodes_;
};

// One NIC, so that what is registered can be counted.
class NodeRdmaDmabuf : public NodeRdmaDevice {
 protected:
  void SetUp() override {
    setenv("HMC_RDMA_DEVICES", "fake0", 1);
    NodeRdmaDevice::SetUp();
    if (IsSkipped()) return;
    here_ = allocate(kGpu);
    there_ = allocate(kOtherGpu);
    nodes_ = std::make_unique<NodePair>(std::vector<std::string>{"verbs"});
  }
  void TearDown() override {
    nodes_.reset();
    if (here_.ptr) release(here_);
    if (there_.ptr) release(there_);
    unsetenv("HMC_RDMA_DEVICES");
    NodeRdmaDevice::TearDown();
  }

  Region here_;
  Region there_;
};

TEST_F(NodeRdmaDmabuf, memoryOfBothSidesIsReachedWithoutStaging) {
  const int before = fake_->registered;
  auto target = must(nodes_->a.registerMemory("target", there_.ptr, kSize));
  auto local = must(nodes_->b.registerMemory("local", here_.ptr, kSize));
  EXPECT_EQ(fake_->registered, before) << "nobody has used it yet";
  auto remote = must(nodes_->toA.open("target"));
  const int opened = fake_->registered;
  EXPECT_THAT(remote.path(), Not(HasSubstr("staged")));
  EXPECT_EQ(fake_->lastDmabuf.length, kSize);
  fake_->dmabufBytes = 0;
  exchange(remote, local, here_, there_);
  EXPECT_EQ(fake_->registered, opened + 1) << "our memory, and no slot of the host";
  EXPECT_GE(fake_->dmabufBytes, 4 * kSize) << "two ends, two transfers, and reads after the puts";
  EXPECT_THAT(explained(), Not(HasSubstr("staged")));
}

TEST_F(NodeRdmaDmabuf, memoryIsDeregisteredWithItsRegion) {
  auto local =
      std::make_unique<LocalRegion>(must(nodes_->b.registerMemory("local", here_.ptr, kSize)));
  auto target = must(nodes_->a.registerMemory("target", there_.ptr, kSize));
  auto remote = must(nodes_->toA.open("target"));
  ASSERT_TRUE(remote.put(*local, 0, 0, 100).ok());
  const int before = fake_->deregistered;
  local.reset();
  EXPECT_EQ(fake_->deregistered, before + 1);
}

TEST_F(NodeRdmaDmabuf, memoryThatNoNicReachesIsStagedAndExplainSaysWhy) {
  fake_->dmabufError = EOPNOTSUPP;
  auto target = must(nodes_->a.registerMemory("target", there_.ptr, kSize));
  auto local = must(nodes_->b.registerMemory("local", here_.ptr, kSize));
  testing::internal::CaptureStderr();
  auto remote = must(nodes_->toA.open("target"));
  const std::string warning = testing::internal::GetCapturedStderr();
  EXPECT_THAT(warning, HasSubstr("slower path than it could be"));
  EXPECT_THAT(warning, HasSubstr("needs Linux 5.12"));
  EXPECT_EQ(remote.path(), "verbs (staged at the target)");
  fake_->dmabufBytes = 0;
  exchange(remote, local, here_, there_);
  EXPECT_EQ(fake_->dmabufBytes, 0u);
  EXPECT_THAT(explained(), HasSubstr("staged at the target: cuda:1 memory cannot be registered"));
  EXPECT_THAT(explained(), HasSubstr("the driver of fake0:1 takes none"));
}

TEST_F(NodeRdmaDmabuf, onlyOurSideIsStagedWhereTheTargetIsReached) {
  auto target = must(nodes_->a.registerMemory("target", there_.ptr, kSize));
  auto local = must(nodes_->b.registerMemory("local", here_.ptr, kSize));
  auto remote = must(nodes_->toA.open("target"));
  EXPECT_THAT(remote.path(), Not(HasSubstr("staged")));
  fake_->dmabufError = EOPNOTSUPP;
  exchange(remote, local, here_, there_);
}

TEST_F(NodeRdmaDevice, twoNicsShareTheMemoryOfADevice) {
  NodePair nodes({"verbs"});
  const Region here = allocate(kGpu);
  const Region there = allocate(kOtherGpu);
  {
    auto target = must(nodes.a.registerMemory("target", there.ptr, kSize));
    auto local = must(nodes.b.registerMemory("local", here.ptr, kSize));
    auto remote = must(nodes.toA.open("target"));
    EXPECT_THAT(remote.path(), HasSubstr("fake0"));
    exchange(remote, local, here, there);
  }
  release(here);
  release(there);
}

}  // namespace
}  // namespace hmc
