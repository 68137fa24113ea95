#include <gtest/gtest.h>

#include "memory/backends.h"
#include "memory/copy.h"
#include "unit/node/node_pair.h"

namespace hmc {
namespace {

constexpr size_t kDeviceSize = size_t{3} << 20;
constexpr std::chrono::seconds kPatience{60};

// Every pair of host and (fake) accelerator memory, over every transport.
class DevicesOver : public testing::TestWithParam<std::string> {
 protected:
  static void exchange(const std::string& transport, Device here, Device there) {
    NodePair nodes({transport});
    auto target = must(nodes.a.allocate("target", kDeviceSize, there));
    auto local = must(nodes.b.allocate("local", kDeviceSize, here));
    auto remote = must(nodes.toA.open("target"));
    EXPECT_EQ(remote.device(), there);
    std::vector<unsigned char> pattern(kDeviceSize);
    std::iota(pattern.begin(), pattern.end(), 5);
    ASSERT_TRUE(copy(region(local), host(pattern)).ok());
    ASSERT_TRUE(remote.put(local, 1, 2, kDeviceSize - 3).ok());
    std::vector<unsigned char> arrived(kDeviceSize);
    ASSERT_TRUE(copy(host(arrived), region(target)).ok());
    EXPECT_EQ(0, memcmp(arrived.data() + 2, pattern.data() + 1, kDeviceSize - 3));

    std::iota(pattern.begin(), pattern.end(), 99);
    ASSERT_TRUE(copy(region(target), host(pattern)).ok());
    ASSERT_TRUE(remote.get(local, 0, 0, kDeviceSize).ok());
    ASSERT_TRUE(copy(host(arrived), region(local)).ok());
    EXPECT_EQ(arrived, pattern);
  }
  static Region region(const LocalRegion& memory) {
    return {memory.data(), memory.size(), memory.device()};
  }
  static Region host(std::vector<unsigned char>& bytes) { return {bytes.data(), bytes.size(), {}}; }

  const Device cpu_{DeviceKind::cpu, 0};
  const Device gpu_{DeviceKind::cuda, 0};
  const Device otherGpu_{DeviceKind::cuda, 1};
};

INSTANTIATE_TEST_SUITE_P(Transports, DevicesOver, testing::Values("ipc", "tcp"),
                         [](const auto& one) { return one.param; });

TEST_P(DevicesOver, hostToDevice) {
  exchange(GetParam(), cpu_, gpu_);
}
TEST_P(DevicesOver, deviceToHost) {
  exchange(GetParam(), gpu_, cpu_);
}
TEST_P(DevicesOver, deviceToDevice) {
  exchange(GetParam(), gpu_, otherGpu_);
}

// Blocks in no order, with empty ones between them, more than are checked and posted at once.
std::vector<Block> scatteredBlocks(size_t count, size_t bytes) {
  std::vector<Block> blocks;
  for (size_t i = 0; i < count; ++i) {
    blocks.push_back({i * bytes, (i * 7919 % count) * bytes, bytes});
    if (i % 1000 == 0) blocks.push_back({0, 0, 0});
  }
  return blocks;
}

TEST_P(DevicesOver, movesLongListsOfBlocks) {
  constexpr size_t kBytes = 16;
  constexpr size_t count = 50000;
  const size_t size = count * kBytes;
  NodePair nodes({GetParam()});
  auto target = must(nodes.a.allocate("target", size, otherGpu_));
  auto local = must(nodes.b.allocate("local", size, gpu_));
  auto remote = must(nodes.toA.open("target"));
  std::vector<unsigned char> pattern(size);
  std::iota(pattern.begin(), pattern.end(), 3);
  ASSERT_TRUE(copy(region(local), host(pattern)).ok());
  const auto blocks = scatteredBlocks(count, kBytes);
  EXPECT_TRUE(must(remote.startPut(local, blocks)).wait(kPatience).ok());
  std::vector<unsigned char> arrived(size);
  ASSERT_TRUE(copy(host(arrived), region(target)).ok());
  for (const auto& [from, to, bytes] : blocks)
    ASSERT_EQ(0, memcmp(arrived.data() + to, pattern.data() + from, bytes)) << from;
  ASSERT_TRUE(copy(region(local), {arrived.data(), size, {}}).ok());
  EXPECT_TRUE(must(remote.startGet(local, blocks)).wait(kPatience).ok());
  ASSERT_TRUE(copy(host(arrived), region(local)).ok());
  EXPECT_EQ(arrived, pattern);
}

TEST_P(DevicesOver, findsTheBlockThatDoesNotFitHoweverLongTheList) {
  constexpr size_t kCount = 40000;
  NodePair nodes({GetParam()});
  auto target = must(nodes.a.allocate("target", kDeviceSize, gpu_));
  auto local = must(nodes.b.allocate("local", kDeviceSize, gpu_));
  auto remote = must(nodes.toA.open("target"));
  std::vector<Block> blocks(kCount, {0, 0, 1});
  blocks[100].size = kDeviceSize + 1;
  EXPECT_EQ(remote.startPut(local, blocks).status().code(), Code::outOfRange);
  blocks[100].size = 1;
  blocks[kCount - 1].remoteOffset = kDeviceSize;
  const Status late = must(remote.startPut(local, blocks)).wait(kPatience);
  EXPECT_EQ(late.code(), Code::outOfRange);
  EXPECT_NE(late.message().find("remote offset 3145728"), std::string::npos) << late.toString();
  EXPECT_EQ(late.message().rfind("a (", 0), 0U) << late.toString();
  EXPECT_TRUE(remote.put(local, 0, 0, kDeviceSize).ok());
}

// The first one is half of the next. Also where that begins with a block of nothing.
TEST(Devices, aLongListIsPostedInParts) {
  constexpr size_t kPart = 16384;
  std::atomic<int> posts{0};
  NodeOptions traced = named("b", {"ipc"});
  traced.trace = {[](void* context, const TraceEvent& event) {
                    if (event.step == TraceEvent::Step::post)
                      ++*static_cast<std::atomic<int>*>(context);
                  },
                  &posts};
  Node a = must(Node::create(named("a", {"ipc"})));
  Node b = must(Node::create(traced));
  const Device gpu{DeviceKind::cuda, 0};
  auto target = must(a.allocate("target", kDeviceSize, gpu));
  auto local = must(b.allocate("local", kDeviceSize, gpu));
  auto remote = must(must(b.connect(must(a.listen("tcp://127.0.0.1:0")))).open("target"));
  std::vector<Block> blocks(4 * kPart, {0, 0, 1});
  for (size_t i = 0; i < blocks.size(); ++i) blocks[i].localOffset = blocks[i].remoteOffset = 2 * i;
  blocks[kPart].size = 0;
  EXPECT_TRUE(must(remote.startPut(local, blocks)).wait(kPatience).ok());
  EXPECT_EQ(posts, 3);
}

// Memory that the program allocated itself is reached through the kernel, which copies between host
// memories only.
TEST(Devices, aDeviceExchangesWithHeapMemoryOfAPeer) {
  NodePair nodes({"ipc"});
  std::vector<unsigned char> heap(kDeviceSize);
  auto target = must(nodes.a.registerMemory("target", heap.data(), heap.size()));
  auto local = must(nodes.b.allocate("local", kDeviceSize, Device{DeviceKind::cuda, 0}));
  auto remote = must(nodes.toA.open("target"));
  EXPECT_EQ(remote.path(), "ipc (process_vm)");
  std::vector<unsigned char> pattern(kDeviceSize);
  std::iota(pattern.begin(), pattern.end(), 7);
  const Region device{local.data(), local.size(), local.device()};
  ASSERT_TRUE(copy(device, {pattern.data(), kDeviceSize, {}}).ok());
  ASSERT_TRUE(remote.put(local, 0, 0, kDeviceSize).ok());
  EXPECT_EQ(heap, pattern);
  std::iota(heap.begin(), heap.end(), 70);
  ASSERT_TRUE(remote.get(local, 0, 0, kDeviceSize).ok());
  std::vector<unsigned char> arrived(kDeviceSize);
  ASSERT_TRUE(copy({arrived.data(), kDeviceSize, {}}, device).ok());
  EXPECT_EQ(arrived, heap);
}

TEST(Devices, stagingOverTcpIsNothingToWarnAbout) {
  NodePair nodes({"tcp"});
  auto target = must(nodes.a.allocate("target", kDeviceSize, Device{DeviceKind::cuda, 0}));
  testing::internal::CaptureStderr();
  EXPECT_EQ(must(nodes.toA.open("target")).path(), "tcp (staged at the target)");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST(Devices, aDeviceThatDoesNotExistIsNamed) {
  Node node = must(Node::create());
  Status status = node.allocate("x", 64, Device{DeviceKind::cuda, 9}).status();
  EXPECT_FALSE(status.ok());
  EXPECT_NE(status.message().find('9'), std::string::npos) << status.message();
}

TEST(Devices, explainSaysWhichTransportStagesAndReckonsWithIt) {
  NodePair nodes({"ipc", "tcp"});
  auto host = nodes.toA.explain(Device{}, kDeviceSize);
  auto device = nodes.toA.explain(Device{DeviceKind::cuda, 1}, kDeviceSize);
  ASSERT_EQ(device[0].transport, "ipc");
  ASSERT_EQ(device[1].transport, "tcp");
  EXPECT_EQ(device[0].reason.find("through the host"), std::string::npos) << device[0].reason;
  EXPECT_NE(device[1].reason.find("cuda:1 memory passes through the host"), std::string::npos)
      << device[1].reason;
  for (int i : {0, 1}) EXPECT_GT(*device[i].predictedNs, *host[i].predictedNs);
  auto none = nodes.toA.explain(Device{DeviceKind::cuda, 9}, kDeviceSize);
  EXPECT_FALSE(none[0].usable);
  EXPECT_NE(none[0].reason.find("cuda:9"), std::string::npos) << none[0].reason;
}

TEST(Devices, aPointerIsRecognised) {
  Node node = must(Node::create());
  Backend& gpu = **findBackend(DeviceKind::cuda);
  Region memory = *gpu.allocate(1, 4096);
  auto region = must(node.registerMemory("gpu", memory.ptr, memory.size));
  EXPECT_EQ(region.device(), (Device{DeviceKind::cuda, 1}));
}

}  // namespace
}  // namespace hmc
