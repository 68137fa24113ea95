#include "contract/memory_contract.h"
#include "contract/second_process.h"

namespace hmc {

TEST_P(MemoryContract, attachesPartOfAnAllocationInTheSameProcess) {
  Region region = allocate(100000);
  write(region, pattern(100000, 9));
  auto shared = backend->share(region.slice(5001, 70000), ShareFor::process);
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
  release(region);
}

TEST_P(MemoryContract, sharesNothingBeyondAnAllocation) {
  Region region = allocate(5000);
  EXPECT_FALSE(backend->share(region.slice(1, 5000), ShareFor::process).ok());
  EXPECT_FALSE(backend->share(region.slice(1, ~size_t{0}), ShareFor::process).ok());
  int local = 0;
  EXPECT_FALSE(backend->share({&local, sizeof(local), region.device}, ShareFor::process).ok());
  release(region);
}

// The other half of the next test, run in a second process.
TEST_P(MemoryContract, DISABLED_secondProcessAnswersInSharedMemory) {
  const Region region = attachInherited();
  ASSERT_TRUE(region.ptr);
  ASSERT_EQ(read(region), pattern(70000, 21));
  write(region, pattern(70000, 22));
  EXPECT_TRUE(backend->detach(region).ok());
}

TEST_P(MemoryContract, sharesMemoryWithAnotherProcess) {
  Region region = allocate(100000, lastDevice());
  write(region.slice(5001, 70000), pattern(70000, 21));
  auto share = backend->share(region.slice(5001, 70000), ShareFor::process);
  ASSERT_TRUE(share.ok()) << share.status().toString();
  EXPECT_EQ(SecondProcess::run("DISABLED_secondProcessAnswersInSharedMemory", *share), 0);
  EXPECT_EQ(read(region.slice(5001, 70000)), pattern(70000, 22));
  EXPECT_EQ(read(region.slice(5000, 1)), std::string(1, '\0'));
  release(region);
}

// The other half of the next test, run in a second process.
TEST_P(MemoryContract, DISABLED_secondProcessAttachesTwice) {
  auto share = SecondProcess::inheritedShare();
  ASSERT_TRUE(share.ok()) << share.status().toString();
  for (int round = 0; round < 2; ++round) {
    auto one = backend->attach(*share);
    ASSERT_TRUE(one.ok()) << one.status().toString();
    auto other = backend->attach(*share);
    ASSERT_TRUE(other.ok()) << other.status().toString();
    EXPECT_TRUE(backend->detach(*one).ok());
    EXPECT_EQ(read(*other), pattern(5000, 41));
    EXPECT_TRUE(backend->detach(*other).ok());
    EXPECT_EQ(backend->detach(*other).code(), Code::invalidArgument);
  }
}

TEST_P(MemoryContract, attachesTheSameMemoryMoreThanOnce) {
  Region region = allocate(5000);
  write(region, pattern(5000, 41));
  auto share = backend->share(region, ShareFor::process);
  ASSERT_TRUE(share.ok()) << share.status().toString();
  EXPECT_EQ(SecondProcess::run("DISABLED_secondProcessAttachesTwice", *share), 0);
  release(region);
}

// The other half of the next test, run in a second process with the devices in another order.
TEST_P(MemoryContract, DISABLED_secondProcessFindsTheDeviceByItsUuid) {
  const Region region = attachInherited();
  ASSERT_TRUE(region.ptr);
  EXPECT_EQ(region.device.index, 1);
  EXPECT_EQ(read(region), pattern(5000, 31));
  EXPECT_TRUE(backend->detach(region).ok());
}

TEST_P(MemoryContract, DISABLED_secondProcessDoesNotSeeTheDevice) {
  auto share = SecondProcess::inheritedShare();
  ASSERT_TRUE(share.ok()) << share.status().toString();
  auto region = backend->attach(*share);
  ASSERT_FALSE(region.ok());
  EXPECT_EQ(region.status().code(), Code::unsupported);
  EXPECT_NE(region.status().message().find(share->device.toString()), std::string::npos)
      << region.status().message();
}

TEST_P(MemoryContract, meansTheSameDeviceInProcessesThatNumberThemOtherwise) {
  const std::string variable = GetParam().visibleDevices;
  if (variable.empty() || lastDevice() == 0) GTEST_SKIP() << "there is one order only";
  Region region = allocate(5000, 0);
  write(region, pattern(5000, 31));
  auto share = backend->share(region, ShareFor::process);
  ASSERT_TRUE(share.ok()) << share.status().toString();
  EXPECT_EQ(share->device, backend->facts().devices[0].uuid);
  EXPECT_EQ(SecondProcess::run("DISABLED_secondProcessFindsTheDeviceByItsUuid", *share,
                               variable + "=1,0"),
            0);
  EXPECT_EQ(
      SecondProcess::run("DISABLED_secondProcessDoesNotSeeTheDevice", *share, variable + "=1"), 0);
  release(region);
}

TEST_P(MemoryContract, sharesForANicAreNotForProcesses) {
  Region region = allocate(10000);
  auto share = backend->share(region, ShareFor::nic);
  if (!share.ok()) {
    EXPECT_EQ(share.status().code(), Code::unsupported);
  } else {
    EXPECT_EQ(share->fds.size(), 1u) << "a NIC needs a descriptor";
    EXPECT_EQ(share->purpose, ShareFor::nic);
    EXPECT_EQ(backend->attach(*share).status().code(), Code::invalidArgument);
  }
  release(region);
}

}  // namespace hmc
