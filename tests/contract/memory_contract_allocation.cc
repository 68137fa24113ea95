#include "contract/memory_contract.h"

namespace hmc {

TEST_P(MemoryContract, allocatesZeroFilledPageAlignedMemoryOnEveryDevice) {
  for (int index = 0; index <= lastDevice(); ++index) {
    Region region = allocate(100001, index);
    EXPECT_EQ(region.size, 100001u);
    EXPECT_EQ(region.device, (Device{backend->facts().kind, index}));
    EXPECT_EQ(reinterpret_cast<uintptr_t>(region.ptr) % 4096, 0u);
    EXPECT_EQ(read(region), std::string(100001, '\0'));
    release(region);
  }
}

TEST_P(MemoryContract, zeroFillsMemoryThatWasUsedBefore) {
  for (int round = 0; round < 3; ++round) {
    Region region = allocate(1 << 16);
    EXPECT_EQ(read(region), std::string(1 << 16, '\0'));
    write(region, pattern(1 << 16, 7));
    release(region);
  }
}

TEST_P(MemoryContract, refusesSizeZeroAndSaysWhatToAskFor) {
  auto made = backend->allocate(0, 0);
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.status().code(), Code::invalidArgument);
}

TEST_P(MemoryContract, refusesDevicesThatDoNotExist) {
  for (int index : {-1, lastDevice() + 1, 1000}) {
    auto made = backend->allocate(index, 4096);
    ASSERT_FALSE(made.ok()) << index;
    EXPECT_EQ(made.status().code(), Code::invalidArgument);
    EXPECT_NE(made.status().message().find(std::to_string(index)), std::string::npos);
  }
}

TEST_P(MemoryContract, refusesImpossibleSizesWithTheNumber) {
  for (size_t size : {size_t{1} << 50, size_t{1} << 62, ~size_t{0}}) {
    auto made = backend->allocate(0, size);
    ASSERT_FALSE(made.ok()) << size;
    EXPECT_EQ(made.status().code(), Code::exhausted);
    EXPECT_NE(made.status().message().find(std::to_string(size)), std::string::npos)
        << made.status().message();
  }
}

TEST_P(MemoryContract, reachesBothEndsOfMoreThanFourGigabytes) {
  const size_t size = (size_t{4} << 30) + 4096 + 1;
  auto made = backend->allocate(0, size);
  if (!made.ok() && made.status().code() == Code::exhausted) {
    GTEST_SKIP() << made.status().message();
  }
  ASSERT_TRUE(made.ok()) << made.status().toString();
  write(made->slice(0, 1), "a");
  write(made->slice(size - 1, 1), "z");
  EXPECT_EQ(read(made->slice(0, 2)), std::string("a\0", 2));
  EXPECT_EQ(read(made->slice(size - 2, 2)), std::string("\0z", 2));
  EXPECT_EQ(backend->locate(made->at(size - 1))->size, size);
  release(*made);
}

TEST_P(MemoryContract, releasesOnceAndOnlyWhatItAllocated) {
  Region region = allocate(8192);
  int local = 0;
  for (void* foreign : {static_cast<void*>(&local), static_cast<void*>(region.at(1)),
                        static_cast<void*>(region.at(4096)), static_cast<void*>(nullptr)}) {
    EXPECT_EQ(backend->release(foreign).code(), Code::invalidArgument);
  }
  write(region, pattern(8192, 1));
  EXPECT_EQ(read(region), pattern(8192, 1));
  release(region);
  EXPECT_EQ(backend->release(region.ptr).code(), Code::invalidArgument);
}

TEST_P(MemoryContract, locatesTheAllocationAroundInnerPointers) {
  Region region = allocate(10000, lastDevice());
  for (size_t offset : {0, 1, 9999}) {
    auto found = backend->locate(region.at(offset));
    ASSERT_TRUE(found.ok()) << offset;
    EXPECT_EQ(found->ptr, region.ptr);
    EXPECT_GE(found->size, 10000u);
    EXPECT_EQ(found->device, region.device);
  }
  int local = 0;
  EXPECT_EQ(backend->locate(&local).status().code(), Code::notFound);
  EXPECT_EQ(backend->locate(nullptr).status().code(), Code::notFound);
  release(region);
  EXPECT_EQ(backend->locate(region.ptr).status().code(), Code::notFound);
}

TEST_P(MemoryContract, doesNotLocateOnePastTheEnd) {
  Region region = allocate(size_t{64} << 10);
  auto found = backend->locate(region.at(region.size));
  // The neighbour may be another allocation, but it is never this one.
  EXPECT_TRUE(!found.ok() || found->ptr != region.ptr);
  release(region);
}

TEST_P(MemoryContract, hasADeviceOfItsOwnForEveryUuid) {
  const auto& devices = backend->facts().devices;
  ASSERT_FALSE(devices.empty());
  for (int index = 0; index <= lastDevice(); ++index) {
    const auto& device = devices[static_cast<size_t>(index)];
    EXPECT_FALSE(device.name.empty());
    auto found = backend->indexOf(device.uuid);
    ASSERT_TRUE(found.ok()) << found.status().toString();
    EXPECT_EQ(*found, index);
  }
}

TEST_P(MemoryContract, pinsHostMemoryAndNothingElse) {
  std::string bytes(100000, 'p');
  for (int round = 0; round < 2; ++round) {
    auto pinned = backend->pin(hostRegion(bytes));
    ASSERT_TRUE(pinned.ok()) << pinned.status().toString();
  }
  EXPECT_EQ(backend->pin({bytes.data(), 0, Device{}}).status().code(), Code::invalidArgument);
  EXPECT_EQ(backend->pin({nullptr, 10, Device{}}).status().code(), Code::invalidArgument);
  Region elsewhere{bytes.data(), 10, Device{otherKind(), 0}};
  EXPECT_EQ(backend->pin(elsewhere).status().code(), Code::invalidArgument);
}

TEST_P(MemoryContract, copiesToAndFromPinnedMemory) {
  std::string bytes = pattern(100000, 11);
  auto pinned = backend->pin(hostRegion(bytes));
  ASSERT_TRUE(pinned.ok()) << pinned.status().toString();
  Region region = allocate(100000);
  EXPECT_TRUE(copyNow(region, hostRegion(bytes)).ok());
  EXPECT_EQ(read(region), bytes);
  std::fill(bytes.begin(), bytes.end(), '.');
  EXPECT_TRUE(copyNow(hostRegion(bytes), region).ok());
  EXPECT_EQ(bytes, pattern(100000, 11));
  release(region);
}

INSTANTIATE_TEST_SUITE_P(All, MemoryContract, testing::ValuesIn(memoryContractCases()),
                         memoryContractName);

}  // namespace hmc
