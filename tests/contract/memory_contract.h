#pragma once

// What every memory backend holds. To join, a test program includes this file and says how its
// backend is made:
//
//   INSTANTIATE_TEST_SUITE_P(Mine, MemoryContract,
//                            testing::Values(MemoryContractCase{"mine", makeMine}),
//                            memoryContractName);

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "contract/second_process.h"
#include "memory/backend.h"

namespace hmc {

struct MemoryContractCase {
  std::string name;
  std::unique_ptr<Backend> (*make)();
};

inline std::string memoryContractName(const testing::TestParamInfo<MemoryContractCase>& info) {
  return info.param.name;
}

class MemoryContract : public testing::TestWithParam<MemoryContractCase> {
 protected:
  Region allocate(size_t size, int index = 0) {
    auto made = backend->allocate(index, size);
    EXPECT_TRUE(made.ok()) << made.status().toString();
    return made.ok() ? *made : Region{};
  }
  int lastDevice() const { return backend->facts().deviceCount - 1; }

  static std::string pattern(size_t size, unsigned seed) {
    std::string bytes(size, '\0');
    for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<char>((i * 131 + seed) % 251);
    return bytes;
  }
  static Region hostRegion(std::string& bytes) { return {bytes.data(), bytes.size(), Device{}}; }

  void write(const Region& dst, std::string bytes) {
    Status status = backend->copy(dst, hostRegion(bytes), nullptr);
    EXPECT_TRUE(status.ok()) << status.toString();
  }
  std::string read(const Region& src) {
    std::string bytes(src.size, '?');
    Status status = backend->copy(hostRegion(bytes), src, nullptr);
    EXPECT_TRUE(status.ok()) << status.toString();
    return bytes;
  }

  const std::unique_ptr<Backend> backend = GetParam().make();
};

TEST_P(MemoryContract, allocatesZeroFilledPageAlignedMemoryOnEveryDevice) {
  for (int index = 0; index <= lastDevice(); ++index) {
    Region region = allocate(100001, index);
    EXPECT_EQ(region.size, 100001u);
    EXPECT_EQ(region.device, (Device{backend->facts().kind, index}));
    EXPECT_EQ(reinterpret_cast<uintptr_t>(region.ptr) % 4096, 0u);
    EXPECT_EQ(read(region), std::string(100001, '\0'));
    EXPECT_TRUE(backend->release(region.ptr).ok());
  }
}

TEST_P(MemoryContract, zeroFillsMemoryThatWasUsedBefore) {
  for (int round = 0; round < 3; ++round) {
    Region region = allocate(1 << 16);
    EXPECT_EQ(read(region), std::string(1 << 16, '\0'));
    write(region, pattern(1 << 16, 7));
    EXPECT_TRUE(backend->release(region.ptr).ok());
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
  EXPECT_TRUE(backend->release(made->ptr).ok());
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
  EXPECT_TRUE(backend->release(region.ptr).ok());
  EXPECT_EQ(backend->release(region.ptr).code(), Code::invalidArgument);
}

TEST_P(MemoryContract, copiesToAndFromTheHostAtOddSizesAndOffsets) {
  Region region = allocate(300000);
  std::string expected(300000, '\0');
  unsigned seed = 0;
  for (size_t size : {size_t{1}, size_t{7}, size_t{64}, size_t{4095}, size_t{65537}}) {
    for (size_t offset : {size_t{0}, size_t{1}, size_t{63}, size_t{4097}, 300000 - size}) {
      std::string bytes = pattern(size, ++seed);
      write(region.slice(offset, size), bytes);
      expected.replace(offset, size, bytes);
      ASSERT_EQ(read(region.slice(offset, size)), bytes);
    }
  }
  EXPECT_EQ(read(region), expected);
  EXPECT_TRUE(backend->release(region.ptr).ok());
}

TEST_P(MemoryContract, copiesIntoALargerDestinationAndRefusesASmallerOne) {
  Region region = allocate(4096);
  std::string bytes = pattern(100, 3);
  EXPECT_TRUE(backend->copy(region, hostRegion(bytes), nullptr).ok());
  EXPECT_EQ(read(region.slice(0, 101)), bytes + '\0');
  Status refused = backend->copy(region.slice(0, 99), hostRegion(bytes), nullptr);
  EXPECT_EQ(refused.code(), Code::outOfRange);
  EXPECT_NE(refused.message().find("100"), std::string::npos);
  EXPECT_TRUE(backend->release(region.ptr).ok());
}

TEST_P(MemoryContract, copiesNothingWhenTheSourceIsEmpty) {
  Region region = allocate(4096);
  EXPECT_TRUE(backend->copy(region, region.slice(10, 0), nullptr).ok());
  EXPECT_EQ(read(region), std::string(4096, '\0'));
  EXPECT_TRUE(backend->release(region.ptr).ok());
}

TEST_P(MemoryContract, copiesLargePieces) {
  const size_t size = (size_t{9} << 20) + 13;
  Region region = allocate(size + 5);
  std::string bytes = pattern(size, 17);
  write(region.slice(5, size), bytes);
  EXPECT_TRUE(read(region.slice(5, size)) == bytes);
  EXPECT_EQ(read(region.slice(0, 5)), std::string(5, '\0'));
  EXPECT_TRUE(backend->release(region.ptr).ok());
}

TEST_P(MemoryContract, copiesWithinAndBetweenDevices) {
  Region first = allocate(10000, 0);
  Region second = allocate(10000, lastDevice());
  write(first, pattern(10000, 5));
  EXPECT_TRUE(backend->copy(second.slice(1, 9999), first.slice(0, 9999), nullptr).ok());
  EXPECT_EQ(read(second.slice(1, 9999)), pattern(9999, 5));
  EXPECT_TRUE(backend->copy(first.slice(0, 100), first.slice(5000, 100), nullptr).ok());
  EXPECT_EQ(read(first.slice(0, 100)), pattern(10000, 5).substr(5000, 100));
  EXPECT_TRUE(backend->release(first.ptr).ok());
  EXPECT_TRUE(backend->release(second.ptr).ok());
}

TEST_P(MemoryContract, finishesStreamCopiesInOrderWhenWaitReturns) {
  Region region = allocate(4096, lastDevice());
  Stream stream{region.device};
  std::string first = pattern(4096, 1);
  std::string second = pattern(2048, 2);
  std::string back(4096, '?');
  EXPECT_TRUE(backend->copy(region, hostRegion(first), &stream).ok());
  EXPECT_TRUE(backend->copy(region, hostRegion(second), &stream).ok());
  EXPECT_TRUE(backend->copy(hostRegion(back), region, &stream).ok());
  EXPECT_TRUE(backend->wait(stream).ok());
  EXPECT_EQ(back, second + first.substr(2048));
  EXPECT_TRUE(backend->wait(stream).ok());
  EXPECT_TRUE(backend->release(region.ptr).ok());
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
  EXPECT_TRUE(backend->release(region.ptr).ok());
  EXPECT_EQ(backend->locate(region.ptr).status().code(), Code::notFound);
}

TEST_P(MemoryContract, doesNotLocateOnePastTheEnd) {
  Region region = allocate(size_t{64} << 10);
  auto found = backend->locate(region.at(region.size));
  // The neighbour may be another allocation, but it is never this one.
  EXPECT_TRUE(!found.ok() || found->ptr != region.ptr);
  EXPECT_TRUE(backend->release(region.ptr).ok());
}

TEST_P(MemoryContract, attachesPartOfAnAllocationInTheSameProcess) {
  Region region = allocate(100000);
  write(region, pattern(100000, 9));
  auto shared = backend->share(region.slice(5001, 70000));
  ASSERT_TRUE(shared.ok()) << shared.status().toString();
  EXPECT_EQ(shared->size, 70000u);
  auto attached = backend->attach(*shared);
  ASSERT_TRUE(attached.ok()) << attached.status().toString();
  EXPECT_EQ(attached->size, 70000u);
  EXPECT_EQ(read(*attached), pattern(100000, 9).substr(5001, 70000));
  write(attached->slice(69999, 1), "!");
  EXPECT_EQ(read(region.slice(75000, 1)), "!");
  EXPECT_EQ(backend->release(attached->ptr).code(), Code::invalidArgument);
  EXPECT_TRUE(backend->detach(*attached).ok());
  EXPECT_EQ(backend->detach(*attached).code(), Code::invalidArgument);
  EXPECT_EQ(backend->detach(region).code(), Code::invalidArgument);
  EXPECT_TRUE(backend->release(region.ptr).ok());
}

TEST_P(MemoryContract, sharesNothingBeyondAnAllocation) {
  Region region = allocate(5000);
  EXPECT_FALSE(backend->share(region.slice(1, 5000)).ok());
  EXPECT_FALSE(backend->share(region.slice(1, ~size_t{0})).ok());
  int local = 0;
  EXPECT_FALSE(backend->share({&local, sizeof(local), region.device}).ok());
  EXPECT_TRUE(backend->release(region.ptr).ok());
}

// The other half of the next test, run in a second process.
TEST_P(MemoryContract, DISABLED_secondProcessAnswersInSharedMemory) {
  auto share = SecondProcess::inheritedShare();
  ASSERT_TRUE(share.ok()) << share.status().toString();
  auto region = backend->attach(*share);
  ASSERT_TRUE(region.ok()) << region.status().toString();
  ASSERT_EQ(read(*region), pattern(70000, 21));
  write(*region, pattern(70000, 22));
  EXPECT_TRUE(backend->detach(*region).ok());
}

TEST_P(MemoryContract, sharesMemoryWithAnotherProcess) {
  Region region = allocate(100000, lastDevice());
  write(region.slice(5001, 70000), pattern(70000, 21));
  auto share = backend->share(region.slice(5001, 70000));
  ASSERT_TRUE(share.ok()) << share.status().toString();
  EXPECT_EQ(SecondProcess::run("DISABLED_secondProcessAnswersInSharedMemory", *share), 0);
  EXPECT_EQ(read(region.slice(5001, 70000)), pattern(70000, 22));
  EXPECT_EQ(read(region.slice(5000, 1)), std::string(1, '\0'));
  EXPECT_TRUE(backend->release(region.ptr).ok());
}

}  // namespace hmc
