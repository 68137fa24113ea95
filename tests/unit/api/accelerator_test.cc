// Runs with HMC_MEMORY_PLUGIN providing two devices of a fake Ascend NPU. Its memory crashes who
// touches it directly, so whatever passes here really went through the backend.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include "api/documented_types.h"
#include "hmc/conn_buffer.h"
#include "memory/backends.h"
#include "memory/device_of.h"

namespace hmc {
namespace {

using testing::HasSubstr;

constexpr MemoryType kNpu = MemoryType::HUAWEI_ASCEND_NPU;

std::string read(ConnBuffer& buffer, size_t size) {
  std::string bytes(size, '?');
  EXPECT_EQ(buffer.readToCpu(&bytes[0], size), status_t::SUCCESS) << lastError();
  return bytes;
}

TEST(AcceleratorMachine, hasItsAcceleratorAsDefault) {
  EXPECT_EQ(memory_supported(), kNpu);
  ConnBuffer buffer(1, 100);
  EXPECT_EQ(buffer.mem_type, kNpu);
  EXPECT_EQ(regionOf(buffer).device, (Device{DeviceKind::acl, 1}));
  EXPECT_EQ(Memory(0).getMemoryType(), kNpu);
}

TEST(AcceleratorMemory, isAllocatedOnTheDeviceThatWasAskedFor) {
  for (int index : {0, 1}) {
    Memory memory(index, kNpu);
    void* ptr = nullptr;
    ASSERT_EQ(memory.allocateBuffer(&ptr, 100), status_t::SUCCESS);
    EXPECT_EQ(*deviceOf(ptr), (Device{DeviceKind::acl, index}));
    EXPECT_EQ(memory.freeBuffer(ptr), status_t::SUCCESS);
    EXPECT_EQ(memory.freeBuffer(nullptr), status_t::SUCCESS);
  }
}

TEST(AcceleratorMemory, comesInWholeUnitsForPeers) {
  Memory memory(0, kNpu);
  Backend* backend = *findBackend(DeviceKind::acl);
  void* ptr = nullptr;
  for (size_t size : {size_t{1}, size_t{65535}, size_t{65536}, size_t{65537}}) {
    ASSERT_EQ(memory.allocatePeerableBuffer(&ptr, size), status_t::SUCCESS);
    EXPECT_EQ(backend->locate(ptr)->size, size <= 65536 ? 65536u : 131072u);
    EXPECT_EQ(memory.freeBuffer(ptr), status_t::SUCCESS);
  }
  EXPECT_EQ(memory.allocatePeerableBuffer(&ptr, ~size_t{0}), status_t::ERROR);
  EXPECT_EQ(memory.allocatePeerableBuffer(&ptr, 0), status_t::ERROR);
}

TEST(AcceleratorMemory, saysHowManyDevicesThereAre) {
  try {
    Memory memory(2, kNpu);
    FAIL() << "it was made";
  } catch (const std::runtime_error& e) {
    EXPECT_THAT(e.what(), HasSubstr("2 devices"));
  }
}

TEST(AcceleratorMemory, copiesBetweenTwoDevicesWhicheverIsOurs) {
  Memory first(0, kNpu);
  Memory second(1, kNpu);
  void* a = nullptr;
  void* b = nullptr;
  ASSERT_EQ(first.allocateBuffer(&a, 5), status_t::SUCCESS);
  ASSERT_EQ(second.allocateBuffer(&b, 5), status_t::SUCCESS);
  EXPECT_EQ(first.copyHostToDevice(a, "hello", 5), status_t::SUCCESS);
  EXPECT_EQ(first.copyDeviceToDevice(b, a, 5), status_t::SUCCESS) << lastError();
  std::string back(5, '?');
  EXPECT_EQ(second.copyDeviceToHost(&back[0], b, 5), status_t::SUCCESS);
  EXPECT_EQ(back, "hello");
  EXPECT_EQ(first.freeBuffer(a), status_t::SUCCESS);
  EXPECT_EQ(second.freeBuffer(b), status_t::SUCCESS);
}

TEST(AcceleratorBuffer, writesAndReadsFromTheHost) {
  ConnBuffer buffer(0, 100000, kNpu);
  EXPECT_EQ(buffer.writeFromCpu("hello", 5, 3), status_t::SUCCESS);
  EXPECT_EQ(read(buffer, 9), std::string("\0\0\0hello\0", 9));
  EXPECT_EQ(buffer.writeFromCpu("hello", 5, 99996), status_t::ERROR);
}

TEST(AcceleratorBuffer, findsTheDeviceOfAnyPointer) {
  ConnBuffer npu0(0, 1000, kNpu);
  ConnBuffer npu1(1, 1000, kNpu);
  ConnBuffer cpu(0, 1000, MemoryType::CPU);
  std::string source(1000, 's');
  for (ConnBuffer* to : {&npu0, &npu1, &cpu}) {
    for (void* from : {npu0.ptr, npu1.ptr, cpu.ptr, static_cast<void*>(&source[0])}) {
      if (from == to->ptr) continue;
      EXPECT_EQ(npu0.writeFromCpu(std::string(10, '0').data(), 10), status_t::SUCCESS);
      EXPECT_EQ(npu1.writeFromCpu(std::string(10, '1').data(), 10), status_t::SUCCESS);
      EXPECT_EQ(cpu.writeFromCpu(std::string(10, 'c').data(), 10), status_t::SUCCESS);
      char expected = from == npu0.ptr ? '0' : from == npu1.ptr ? '1' : from == cpu.ptr ? 'c' : 's';
      EXPECT_EQ(to->writeFromGpu(from, 10, 5), status_t::SUCCESS) << lastError();
      EXPECT_EQ(read(*to, 15).substr(5), std::string(10, expected));
    }
  }
}

TEST(AcceleratorBuffer, readsToAnyDevice) {
  ConnBuffer npu(0, 1000, kNpu);
  ConnBuffer other(1, 1000, kNpu);
  ConnBuffer cpu(0, 1000, MemoryType::CPU);
  std::string back(5, '?');
  ASSERT_EQ(npu.writeFromCpu("hello", 5, 7), status_t::SUCCESS);
  EXPECT_EQ(npu.readToGpu(other.ptr, 5, 7), status_t::SUCCESS) << lastError();
  EXPECT_EQ(read(other, 5), "hello");
  EXPECT_EQ(npu.readToGpu(cpu.ptr, 5, 7), status_t::SUCCESS);
  EXPECT_EQ(read(cpu, 5), "hello");
  EXPECT_EQ(npu.readToGpu(&back[0], 5, 7), status_t::SUCCESS);
  EXPECT_EQ(back, "hello");
  EXPECT_EQ(cpu.readToGpu(npu.ptr, 5), status_t::SUCCESS);
  EXPECT_EQ(read(npu, 5), "hello");
}

TEST(AcceleratorBuffer, copiesWithinItselfAsMemmoveDoes) {
  ConnBuffer buffer(1, 1 << 20, kNpu);
  std::string bytes(1 << 20, '\0');
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>((i * 13 + i / 256) % 251);
  for (size_t distance : {size_t{1}, size_t{4096}, size_t{100000}, size_t{900000}}) {
    size_t length = bytes.size() - distance;
    ASSERT_EQ(buffer.writeFromCpu(bytes.data(), bytes.size()), status_t::SUCCESS);
    EXPECT_EQ(buffer.copyWithin(distance, 0, length), status_t::SUCCESS) << lastError();
    EXPECT_TRUE(read(buffer, bytes.size()) == bytes.substr(0, distance) + bytes.substr(0, length));
    ASSERT_EQ(buffer.writeFromCpu(bytes.data(), bytes.size()), status_t::SUCCESS);
    EXPECT_EQ(buffer.copyWithin(0, distance, length), status_t::SUCCESS) << lastError();
    EXPECT_TRUE(read(buffer, bytes.size()) == bytes.substr(distance) + bytes.substr(length));
  }
}

}  // namespace
}  // namespace hmc
