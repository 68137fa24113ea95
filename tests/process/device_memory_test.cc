// Runs with HMC_MEMORY_PLUGIN providing two devices, and with a libibverbs that moves bytes within
// this process where the build has its headers.

#include <gmock/gmock.h>
#include <hmc.h>

#include <thread>
#include <tuple>

#include "pair.h"

namespace hmc::test {
namespace {

constexpr MemoryType kGpu = MemoryType::NVIDIA_GPU;
constexpr size_t kBuffer = size_t{1} << 20;
constexpr size_t kSlot = kBuffer / 32;

// Memory of one type that holds a text.
class Place {
 public:
  Place(MemoryType type, const std::string& text) : type_(type), size_(text.size()) {
    EXPECT_EQ(memory_.allocateBuffer(&data_, std::max<size_t>(size_, 1)), status_t::SUCCESS)
        << lastError();
    EXPECT_EQ(memory_.copyHostToDevice(data_, text.data(), size_), status_t::SUCCESS);
  }
  ~Place() { memory_.freeBuffer(data_); }
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;

  void* data() const { return data_; }
  size_t size() const { return size_; }
  MemoryType type() const { return type_; }
  std::string text() {
    std::string text(size_, '\0');
    EXPECT_EQ(memory_.copyDeviceToHost(text.data(), data_, size_), status_t::SUCCESS);
    return text;
  }

 private:
  const MemoryType type_;
  const size_t size_;
  Memory memory_{0, type_};
  void* data_ = nullptr;
};

// Over a transport, through buffers of a type on either side.
using Way = std::tuple<ConnType, MemoryType, MemoryType>;

class DeviceMemory : public testing::TestWithParam<Way> {
 protected:
  const ConnType type = std::get<0>(GetParam());
  Party server{kBuffer, 1, std::get<1>(GetParam())};
  Party client{kBuffer, 1, std::get<2>(GetParam())};

  void SetUp() override {
    ASSERT_EQ(server.serve(type), status_t::SUCCESS) << lastError();
    ASSERT_EQ(client.connectTo(server, type), status_t::SUCCESS) << lastError();
  }

  void expectMoves(size_t size, MemoryType fromType, MemoryType toType, int seed) {
    const std::string bytes = Party::pattern(size, seed);
    Place from(fromType, bytes);
    Place to(toType, std::string(size, '?'));
    status_t sent = status_t::ERROR;
    std::string sentence;
    std::thread sender([&] {
      sent = client.communicator->sendDataTo(kHere, server.dataPort, from.data(), size, fromType,
                                             type);
      sentence = lastError();
    });
    size_t count = 0;
    EXPECT_EQ(
        server.communicator->recvDataFrom(kHere, 0, to.data(), to.size(), toType, &count, type),
        status_t::SUCCESS)
        << lastError();
    sender.join();
    EXPECT_EQ(sent, status_t::SUCCESS) << sentence;
    EXPECT_EQ(count, size);
    EXPECT_TRUE(to.text() == bytes) << size << " bytes arrived changed";
  }
};

TEST_P(DeviceMemory, streamsEverySizeBetweenAnyTwoMemories) {
  int seed = 0;
  for (MemoryType from : {kGpu, MemoryType::CPU}) {
    for (MemoryType to : {kGpu, MemoryType::CPU}) {
      for (size_t size : {size_t{0}, size_t{1}, kSlot - 1, kSlot, kSlot + 1, 16 * kSlot + 1,
                          2 * kBuffer + 7, size_t{3} * 1000003}) {
        expectMoves(size, from, to, ++seed);
      }
    }
  }
}

TEST_P(DeviceMemory, isPutAndGotAsAPipeline) {
  constexpr size_t kSize = kBuffer - 11;
  int seed = 0;
  for (size_t chunk : {size_t{9999}, size_t{65536}, size_t{0}}) {
    client.fill(3, kSize, ++seed);
    EXPECT_EQ(client.communicator->putPipeline(kHere, server.dataPort, 3, 7, kSize, chunk, 5, type),
              status_t::SUCCESS)
        << lastError();
    EXPECT_TRUE(server.bytes(7, kSize) == Party::pattern(kSize, seed)) << chunk;
    server.fill(5, kSize, ++seed);
    EXPECT_EQ(client.communicator->getPipeline(kHere, server.dataPort, 1, 5, kSize, chunk, 5, type),
              status_t::SUCCESS)
        << lastError();
    EXPECT_TRUE(client.bytes(1, kSize) == Party::pattern(kSize, seed)) << chunk;
  }
}

TEST_P(DeviceMemory, saysWhatCarriesIt) {
  const std::string path = client.communicator->path(kHere, server.dataPort, type);
  if (type == ConnType::IPC) {
    EXPECT_THAT(path, testing::StartsWith("ipc"));
  }
  if (type == ConnType::TCP) {
    EXPECT_THAT(path, testing::StartsWith("tcp"));
  }
#ifdef HMC_FAKE_VERBS
  if (type == ConnType::RDMA) {
    EXPECT_THAT(path, testing::StartsWith("verbs"));
  }
#endif
  EXPECT_THAT(client.communicator->path("10.9.8.7", 1, type), testing::HasSubstr("10.9.8.7"));
}

std::string wayName(const testing::TestParamInfo<Way>& info) {
  const auto [type, server, client] = info.param;
  auto memory = [](MemoryType one) { return one == kGpu ? "Device" : "Host"; };
  const char* const names[] = {"rdma", "ucx", "tcp", "ipc"};
  return std::string(names[static_cast<int>(type)]) + memory(client) + "To" + memory(server);
}

INSTANTIATE_TEST_SUITE_P(Way, DeviceMemory,
                         testing::Combine(testing::Values(ConnType::IPC, ConnType::TCP),
                                          testing::Values(MemoryType::CPU, kGpu),
                                          testing::Values(MemoryType::CPU, kGpu)),
                         wayName);
INSTANTIATE_TEST_SUITE_P(Ucx, DeviceMemory, testing::Values(Way{ConnType::UCX, kGpu, kGpu}),
                         wayName);
#if !defined(__SANITIZE_THREAD__)
// The NIC is a fake, too, and would crash on the device's addresses. What it writes is ordered by
// messages, which ThreadSanitizer cannot follow.
INSTANTIATE_TEST_SUITE_P(Rdma, DeviceMemory,
                         testing::Values(Way{ConnType::RDMA, MemoryType::CPU, MemoryType::CPU}),
                         wayName);
#endif

}  // namespace
}  // namespace hmc::test
