#include "hmc/memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>

namespace hmc {
namespace {

using testing::HasSubstr;

TEST(MemoryType, keepsTheDocumentedOrder) {
  EXPECT_EQ(static_cast<int>(MemoryType::DEFAULT), 0);
  EXPECT_EQ(static_cast<int>(MemoryType::CPU), 1);
  EXPECT_EQ(static_cast<int>(MemoryType::NVIDIA_GPU), 2);
  EXPECT_EQ(static_cast<int>(MemoryType::AMD_GPU), 3);
  EXPECT_EQ(static_cast<int>(MemoryType::CAMBRICON_MLU), 4);
  EXPECT_EQ(static_cast<int>(MemoryType::HUAWEI_ASCEND_NPU), 5);
  EXPECT_EQ(static_cast<int>(MemoryType::MOORE_GPU), 6);
  EXPECT_EQ(ACCEL_PAGE_SIZE, 65536);
}

TEST(Memory, standsForWhatTheMachineHasWhenDefault) {
  Memory memory(0);
  EXPECT_EQ(memory.getMemoryType(), memory_supported());
  EXPECT_NE(memory_supported(), MemoryType::DEFAULT);
}

TEST(Memory, allocatesCopiesAndFreesHostMemory) {
  Memory memory(0, MemoryType::CPU);
  EXPECT_EQ(memory.init(), status_t::SUCCESS);
  EXPECT_EQ(memory.getInitStatus(), status_t::SUCCESS);
  void* a = nullptr;
  void* b = nullptr;
  ASSERT_EQ(memory.allocateBuffer(&a, 1000), status_t::SUCCESS);
  ASSERT_EQ(memory.allocatePeerableBuffer(&b, 1000), status_t::SUCCESS);
  std::string out(1000, '?');
  const std::string in(1000, 'i');
  EXPECT_EQ(memory.copyHostToDevice(a, in.data(), 1000), status_t::SUCCESS);
  EXPECT_EQ(memory.copyDeviceToDevice(b, a, 1000), status_t::SUCCESS);
  EXPECT_EQ(memory.copyDeviceToHost(&out[0], b, 1000), status_t::SUCCESS);
  EXPECT_EQ(out, in);
  EXPECT_EQ(memory.freeBuffer(a), status_t::SUCCESS);
  EXPECT_EQ(memory.freeBuffer(b), status_t::SUCCESS);
  EXPECT_EQ(memory.free(), status_t::SUCCESS);
}

TEST(Memory, ignoresTheDeviceNumberOfHostMemory) {
  Memory memory(7, MemoryType::CPU);
  EXPECT_EQ(memory.getDeviceId(), 7);
  void* ptr = nullptr;
  EXPECT_EQ(memory.allocateBuffer(&ptr, 1), status_t::SUCCESS);
  EXPECT_EQ(memory.freeBuffer(ptr), status_t::SUCCESS);
}

TEST(Memory, freesNullAsSuccessAndForeignPointersAsErrors) {
  Memory memory(0, MemoryType::CPU);
  int local = 0;
  EXPECT_EQ(memory.freeBuffer(nullptr), status_t::SUCCESS);
  EXPECT_EQ(memory.freeBuffer(&local), status_t::ERROR);
  EXPECT_THAT(lastError(), HasSubstr("cannot be released"));
}

TEST(Memory, refusesNullPointersWithASentence) {
  Memory memory(0, MemoryType::CPU);
  char byte = 0;
  EXPECT_EQ(memory.copyHostToDevice(nullptr, &byte, 1), status_t::ERROR);
  EXPECT_THAT(lastError(), HasSubstr("null destination"));
  EXPECT_EQ(memory.copyDeviceToHost(&byte, nullptr, 1), status_t::ERROR);
  EXPECT_THAT(lastError(), HasSubstr("null source"));
  EXPECT_EQ(memory.copyDeviceToDevice(nullptr, nullptr, 1), status_t::ERROR);
  EXPECT_EQ(memory.allocateBuffer(nullptr, 1), status_t::ERROR);
}

TEST(Memory, answersNullWhenItCannotAllocate) {
  Memory memory(0, MemoryType::CPU);
  for (size_t size : {size_t{0}, size_t{1} << 60, ~size_t{0}}) {
    void* ptr = &memory;
    EXPECT_EQ(memory.allocateBuffer(&ptr, size), status_t::ERROR);
    EXPECT_EQ(ptr, nullptr);
    EXPECT_THAT(lastError(), HasSubstr(std::to_string(size) + " bytes"));
    ptr = &memory;
    EXPECT_EQ(memory.allocatePeerableBuffer(&ptr, size), status_t::ERROR);
    EXPECT_EQ(ptr, nullptr);
  }
}

TEST(Memory, throwsWithAReasonForATypeThatDoesNotExist) {
  try {
    Memory memory(0, static_cast<MemoryType>(42));
    FAIL() << "it was made";
  } catch (const std::runtime_error& e) {
    EXPECT_THAT(e.what(), HasSubstr("42"));
  }
}

TEST(Memory, throwsWithAReasonForADeviceThatDoesNotExist) {
  for (auto type : {MemoryType::NVIDIA_GPU, MemoryType::AMD_GPU, MemoryType::CAMBRICON_MLU,
                    MemoryType::HUAWEI_ASCEND_NPU, MemoryType::MOORE_GPU}) {
    EXPECT_THROW(Memory(12345, type), std::runtime_error);
  }
}

TEST(Memory, staysAsItWasWhenItCannotChangeDevice) {
  Memory memory(3, MemoryType::CPU);
  EXPECT_NE(memory.setDeviceIdAndMemoryType(12345, MemoryType::MOORE_GPU), status_t::SUCCESS);
  EXPECT_NE(lastError(), "");
  EXPECT_EQ(memory.getMemoryType(), MemoryType::CPU);
  EXPECT_EQ(memory.getDeviceId(), 3);
  EXPECT_EQ(memory.setDeviceIdAndMemoryType(4, MemoryType::CPU), status_t::SUCCESS);
  EXPECT_EQ(memory.getDeviceId(), 4);
}

TEST(Memory, createsTheInterfaceOfAnyType) {
  Memory memory(0, MemoryType::CPU);
  std::unique_ptr<MemoryBase> base = memory.createMemoryClass(MemoryType::CPU);
  void* ptr = nullptr;
  ASSERT_EQ(base->allocateBuffer(&ptr, 10), status_t::SUCCESS);
  EXPECT_EQ(base->copyHostToDevice(ptr, "abc", 3), status_t::SUCCESS);
  EXPECT_EQ(std::string(static_cast<char*>(ptr), 3), "abc");
  EXPECT_EQ(base->freeBuffer(ptr), status_t::SUCCESS);
}

}  // namespace
}  // namespace hmc
