#include <sys/mman.h>

#include "unit/memory/fake_cuda.h"

// The fake driver refuses what NVIDIA's would.
namespace hmc::cuda {
namespace {

constexpr size_t kFakeGranule = size_t{2} << 20;

class FakeLibcuda : public FakeCuda {
 protected:
  CuAllocation create(size_t size) {
    CuMemProperties properties{};
    properties.type = kAllocationPinned;
    properties.location = {kLocationDevice, 0};
    properties.requestedHandleTypes = kHandleDescriptor;
    CuAllocation handle = 0;
    EXPECT_EQ(driver.cuMemCreate(&handle, size, &properties, 0), kSuccess);
    return handle;
  }
  CuPointer reserve(size_t size) {
    CuPointer base = 0;
    EXPECT_EQ(driver.cuMemAddressReserve(&base, size, 0, 0, 0), kSuccess);
    return base;
  }
  CuStream stream() {
    CuStream made = nullptr;
    EXPECT_EQ(driver.cuStreamCreateWithPriority(&made, kStreamNonBlocking, 0), kSuccess);
    return made;
  }
};

TEST_F(FakeLibcuda, wantsACurrentContext) {
  size_t free = 0;
  size_t total = 0;
  std::string bytes(10, 'x');
  CuStream made = nullptr;
  EXPECT_EQ(driver.cuMemGetInfo_v2(&free, &total), kInvalidContext);
  EXPECT_EQ(driver.cuCtxSynchronize(), kInvalidContext);
  EXPECT_EQ(driver.cuMemHostRegister_v2(bytes.data(), 10, 0), kInvalidContext);
  EXPECT_EQ(driver.cuStreamCreateWithPriority(&made, 0, 0), kInvalidContext);
  EXPECT_EQ(driver.cuMemcpyAsync(address(bytes.data()), address(bytes.data()), 1, nullptr),
            kInvalidContext);
  EXPECT_EQ(driver.cuCtxPopCurrent_v2(nullptr), kInvalidContext);
  EXPECT_EQ(driver.cuCtxPushCurrent_v2(nullptr), kInvalidContext);
}

TEST_F(FakeLibcuda, refusesStreamsOfAnotherContext) {
  CuStream other = nullptr;
  {
    Current current(driver, contextOf(1));
    other = stream();
  }
  Region region = allocateAsOthersDo(4096);
  {
    Current current(driver, contextOf(0));
    EXPECT_NE(driver.cuMemsetD8Async(address(region.ptr), 0, 1, other), kSuccess);
    EXPECT_EQ(driver.cuMemsetD8Async(address(region.ptr), 0, 1, stream()), kSuccess);
  }
  freeAsOthersDo(region);
}

TEST_F(FakeLibcuda, mapsWholeGranulesOfFreeAddressesOnly) {
  const size_t before = live().bytes;
  const CuAllocation memory = create(kFakeGranule);
  const CuPointer base = reserve(2 * kFakeGranule);
  CuPointer refused = 0;
  EXPECT_EQ(driver.cuMemAddressReserve(&refused, 4096, 0, 0, 0), kInvalidValue);
  EXPECT_EQ(driver.cuMemMap(base, 4096, 0, memory, 0), kInvalidValue);
  EXPECT_EQ(driver.cuMemMap(base + 4096, kFakeGranule, 0, memory, 0), kInvalidValue);
  EXPECT_EQ(driver.cuMemMap(base, 2 * kFakeGranule, 0, memory, 0), kInvalidValue);
  EXPECT_EQ(driver.cuMemMap(base, kFakeGranule, 4096, memory, 0), kInvalidValue);
  EXPECT_EQ(driver.cuMemMap(base, kFakeGranule, 0, memory + 1000, 0), kInvalidValue);
  EXPECT_EQ(driver.cuMemMap(base, kFakeGranule, 0, memory, 0), kSuccess);
  EXPECT_EQ(driver.cuMemMap(base, kFakeGranule, 0, memory, 0), kInvalidValue);
  EXPECT_EQ(driver.cuMemRelease(memory), kSuccess);
  EXPECT_EQ(driver.cuMemRelease(memory), kInvalidValue);
  EXPECT_EQ(driver.cuMemAddressFree(base, 2 * kFakeGranule), kInvalidValue);
  EXPECT_EQ(driver.cuMemUnmap(base, 4096), kInvalidValue);
  EXPECT_EQ(driver.cuMemUnmap(base, 2 * kFakeGranule), kInvalidValue);
  EXPECT_EQ(driver.cuMemUnmap(base, kFakeGranule), kSuccess);
  EXPECT_EQ(driver.cuMemAddressFree(base, kFakeGranule), kInvalidValue);
  EXPECT_EQ(driver.cuMemAddressFree(base, 2 * kFakeGranule), kSuccess);
  EXPECT_EQ(live().bytes, before);
}

TEST_F(FakeLibcuda, crashesTheProcessorThatTouchesItsMemory) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  Region region = allocateAsOthersDo(4096);
  EXPECT_DEATH(*static_cast<volatile char*>(region.ptr) = 1, "");
  freeAsOthersDo(region);
}

TEST_F(FakeLibcuda, runsCopiesOfPinnedMemoryLaterAndOthersAtOnce) {
  Region region = allocateAsOthersDo(4);
  void* word = nullptr;
  std::string pinned = "abcd";
  std::string pageable = "....";
  Current current(driver, contextOf(0));
  ASSERT_EQ(driver.cuMemHostAlloc(&word, 4, 0), kSuccess);
  ASSERT_EQ(driver.cuMemHostRegister_v2(pinned.data(), 4, 0), kSuccess);
  EXPECT_EQ(driver.cuMemHostRegister_v2(pinned.data() + 3, 4, 0), kAlreadyRegistered);
  CuStream first = stream();
  ASSERT_EQ(driver.cuStreamWaitValue32_v2(first, address(word), 1, kWaitAtLeast), kSuccess);
  ASSERT_EQ(driver.cuMemcpyAsync(address(region.ptr), address(pinned.data()), 4, first), kSuccess);
  EXPECT_EQ(driver.cuStreamQuery(first), kNotReady);
  CuStream second = stream();
  ASSERT_EQ(driver.cuMemcpyAsync(address(pageable.data()), address(region.ptr), 4, second),
            kSuccess);
  EXPECT_EQ(pageable, std::string(4, '\0'));
  __atomic_store_n(static_cast<uint32_t*>(word), 1, __ATOMIC_RELEASE);
  EXPECT_EQ(driver.cuCtxSynchronize(), kSuccess);
  EXPECT_EQ(driver.cuStreamQuery(first), kSuccess);
  ASSERT_EQ(driver.cuMemcpyAsync(address(pageable.data()), address(region.ptr), 4, second),
            kSuccess);
  EXPECT_EQ(pageable, "abcd");
  EXPECT_EQ(driver.cuMemHostUnregister(pinned.data()), kSuccess);
  EXPECT_NE(driver.cuMemHostUnregister(pinned.data()), kSuccess);
  freeAsOthersDo(region);
}

TEST_F(FakeLibcuda, waitsForWordsThatOnlyStreamsCanReach) {
  Current current(driver, contextOf(0));
  uint32_t pageable = 0;
  EXPECT_EQ(driver.cuStreamWriteValue32_v2(stream(), address(&pageable), 1, 0), kInvalidValue);
}

TEST_F(FakeLibcuda, doesNotOpenItsOwnHandles) {
  Region region = allocateAsOthersDo(4096);
  Current current(driver, contextOf(0));
  CuIpcMemHandle handle{};
  CuPointer opened = 0;
  ASSERT_EQ(driver.cuIpcGetMemHandle(&handle, address(region.ptr)), kSuccess);
  EXPECT_EQ(driver.cuIpcOpenMemHandle_v2(&opened, handle, kIpcLazyPeerAccess), kInvalidContext);
  EXPECT_EQ(driver.cuIpcCloseMemHandle(address(region.ptr)), kInvalidValue);
  freeAsOthersDo(region);
}

TEST_F(FakeLibcuda, knowsNothingOfHostMemory) {
  int attributes[] = {kAttributeMemoryType, kAttributeRangeSize};
  int type = 7;
  size_t size = 7;
  void* values[] = {&type, &size};
  EXPECT_EQ(driver.cuPointerGetAttributes(2, attributes, values, address(&type)), kSuccess);
  EXPECT_EQ(type, 0);
  EXPECT_EQ(size, 0u);
}

}  // namespace
}  // namespace hmc::cuda
