// Runs with HMC_MEMORY_PLUGIN providing two fake vendors, hip and musa, of three devices each.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fakes/fake_accelerator.h"
#include "fakes/pattern.h"
#include "memory/backends.h"
#include "memory/copy.h"
#include "memory/device_of.h"
#include "memory/device_pins.h"
#include "memory/pending_copy.h"
#include "unit/memory/host_region.h"

namespace hmc {
namespace {

using test::pattern;
using testing::HasSubstr;

class TwoVendors : public testing::Test {
 protected:
  void SetUp() override {
    for (auto kind : {DeviceKind::hip, DeviceKind::musa}) {
      auto found = findBackend(kind);
      ASSERT_TRUE(found.ok()) << found.status().toString();
    }
  }
  Region allocate(Device device, size_t size) {
    auto made = (*findBackend(device))->allocate(device.index, size);
    EXPECT_TRUE(made.ok()) << made.status().toString();
    return *made;
  }
  void release(const Region& region) {
    EXPECT_TRUE((*findBackend(region.device))->release(region.ptr).ok());
  }
  std::string read(const Region& region) {
    std::string bytes(region.size, '?');
    EXPECT_TRUE(copy(host(bytes), region).ok());
    return bytes;
  }
  // The plugin's: its tables can be asked from here.
  static FakeAccelerator& fake(DeviceKind kind) {
    return static_cast<FakeAccelerator&>(**findBackend(kind));
  }
  const Device hip{DeviceKind::hip, 1};
  const Device musa{DeviceKind::musa, 2};
};

TEST_F(TwoVendors, areTheAcceleratorsOfThisMachine) {
  std::vector<DeviceKind> kinds;
  for (Backend* backend : accelerators()) kinds.push_back(backend->facts().kind);
  EXPECT_THAT(kinds, testing::IsSupersetOf({DeviceKind::hip, DeviceKind::musa}));
}

TEST_F(TwoVendors, haveTheNumberOfDevicesThatTheySay) {
  EXPECT_TRUE(findBackend(Device{DeviceKind::hip, 2}).ok());
  auto beyond = findBackend(Device{DeviceKind::hip, 3});
  ASSERT_FALSE(beyond.ok());
  EXPECT_THAT(beyond.status().message(), HasSubstr("3 devices"));
  EXPECT_FALSE(findBackend(Device{DeviceKind::hip, -1}).ok());
}

TEST_F(TwoVendors, recogniseTheirPointers) {
  Region first = allocate(hip, 5000);
  Region second = allocate(musa, 5000);
  EXPECT_EQ(*deviceOf(first.at(4999)), hip);
  EXPECT_EQ(*deviceOf(second.ptr), musa);
  EXPECT_EQ(*deviceOf(&first), Device{});
  release(first);
  release(second);
}

TEST_F(TwoVendors, exchangeBytesThroughTheHostInPieces) {
  for (size_t size : {size_t{1}, size_t{4097}, (size_t{9} << 20) + 5}) {
    std::string bytes = pattern(size);
    Region first = allocate(hip, size);
    Region second = allocate(musa, size + 3);
    EXPECT_TRUE(copy(first, host(bytes)).ok());
    EXPECT_TRUE(copy(second.slice(3, size), first).ok());
    EXPECT_TRUE(read(second.slice(3, size)) == bytes);
    EXPECT_EQ(read(second.slice(0, 3)), std::string(3, '\0'));
    release(first);
    release(second);
  }
}

TEST_F(TwoVendors, exchangeBytesThroughPinnedMemoryThatIsKept) {
  Region first = allocate(hip, size_t{9} << 20);
  Region second = allocate(musa, size_t{9} << 20);
  auto unpinned = [] {
    return fake(DeviceKind::hip).unpinnedCopies() + fake(DeviceKind::musa).unpinnedCopies();
  };
  const size_t before = unpinned();
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(copy(second, first).ok());
  EXPECT_EQ(unpinned(), before);
  for (auto kind : {DeviceKind::hip, DeviceKind::musa}) {
    EXPECT_GE(fake(kind).pinned(), 1u);
    EXPECT_LE(fake(kind).pinned(), 2u);
  }
  release(first);
  release(second);
}

TEST_F(TwoVendors, bothPinHostMemoryThatMayMeetEither) {
  const size_t before = fake(DeviceKind::hip).pinned();
  std::string bytes(5000, 'x');
  DevicePins pins;
  for (auto kind : {DeviceKind::hip, DeviceKind::musa, DeviceKind::hip}) {
    pins.pin(host(bytes), fake(kind));
  }
  EXPECT_EQ(fake(DeviceKind::hip).pinned(), before + 1);
  const Region region = allocate(musa, 5000);
  const size_t unpinned = fake(DeviceKind::musa).unpinnedCopies();
  EXPECT_TRUE(copy(region, host(bytes)).ok());
  EXPECT_EQ(fake(DeviceKind::musa).unpinnedCopies(), unpinned);
  pins.clear();
  EXPECT_EQ(fake(DeviceKind::hip).pinned(), before);
  release(region);
}

TEST_F(TwoVendors, sayWhichCopyFailedAndGoOn) {
  Region first = allocate(hip, 5000);
  Region second = allocate(musa, 5000);
  fake(DeviceKind::musa)
      .failNext(FakeAccelerator::Call::copy, Status(Code::failed, "uncorrectable error"));
  EXPECT_EQ(copy(second, first).message(), "uncorrectable error");
  EXPECT_TRUE(copy(second, first).ok());
  release(first);
  release(second);
}

TEST_F(TwoVendors, giveUpOnADeviceThatIsStuck) {
  Region first = allocate(hip, 5000);
  Region second = allocate(musa, 5000);
  ASSERT_TRUE(fake(DeviceKind::musa).stall({musa}, true).ok());
  EXPECT_EQ(copy(second, first, std::chrono::milliseconds(30)).code(), Code::deadlineExceeded);
  ASSERT_TRUE(fake(DeviceKind::musa).stall({musa}, false).ok());
  EXPECT_TRUE(copy(second, first).ok());
  release(first);
  release(second);
}

TEST_F(TwoVendors, startCopiesWithoutWaitingForThem) {
  const size_t size = (size_t{9} << 20) + 5;
  Region region = allocate(hip, size);
  std::string bytes = pattern(size);
  ASSERT_TRUE(copy(region, host(bytes)).ok());
  Region other = allocate(hip, size);
  Region elsewhere = allocate(musa, size);
  ASSERT_TRUE(fake(DeviceKind::hip).stall({hip}, true).ok());
  auto first = PendingCopy::start(other, host(bytes));
  auto second = PendingCopy::start(elsewhere, region);
  ASSERT_TRUE(first.ok()) << first.status().toString();
  ASSERT_TRUE(second.ok()) << second.status().toString();
  for (int i = 0; i < 100; ++i) {
    EXPECT_FALSE(*(*first)->passed());
    EXPECT_FALSE(*(*second)->passed());
  }
  ASSERT_TRUE(fake(DeviceKind::hip).stall({hip}, false).ok());
  while (!*(*second)->passed() || !*(*first)->passed()) {
  }
  EXPECT_TRUE(read(elsewhere) == bytes);
  EXPECT_TRUE(read(other) == bytes);
  release(region);
  release(other);
  release(elsewhere);
}

// The device reads it, so nobody else may get it meanwhile, and never if nobody knows how long.
TEST_F(TwoVendors, keepTheListOfACopyUntilItHasEnded) {
  Region region = allocate(hip, 4096);
  const Block block{0, 2048, 2048};
  auto borrow = [] { return std::move(borrowBuffer(kBorrowedListSize)).value(); };
  for (bool ends : {true, false}) {
    auto list = borrow();
    const char* at = list->region(0).at(0);
    ASSERT_TRUE(fake(DeviceKind::hip).stall({hip}, true).ok());
    auto copy = PendingCopy::startBatch({region, region, {&block, 1}, 2048}, std::move(list));
    ASSERT_TRUE(copy.ok()) << copy.status().toString();
    EXPECT_NE(borrow()->region(0).at(0), at);
    if (ends) {
      ASSERT_TRUE(fake(DeviceKind::hip).stall({hip}, false).ok());
      ASSERT_TRUE(waitFor(**copy, kCopyTimeout).ok());
    }
    copy->reset();
    EXPECT_EQ(borrow()->region(0).at(0) == at, ends);
    ASSERT_TRUE(fake(DeviceKind::hip).stall({hip}, false).ok());
  }
  release(region);
}

TEST_F(TwoVendors, copyBetweenTheirOwnDevices) {
  std::string bytes = pattern(10000);
  Region first = allocate(hip, 10000);
  Region second = allocate(Device{DeviceKind::hip, 0}, 10000);
  EXPECT_TRUE(copy(first, host(bytes)).ok());
  EXPECT_TRUE(copy(second, first).ok());
  EXPECT_EQ(read(second), bytes);
  release(first);
  release(second);
}

TEST_F(TwoVendors, moveOverlappingMemoryNearAndFarInBothDirections) {
  const size_t size = (size_t{5} << 20) + 77;
  const std::string bytes = pattern(size);
  for (size_t distance : {size_t{0}, size_t{1}, size_t{1000}, size_t{64} << 10, size_t{3} << 20}) {
    for (bool up : {true, false}) {
      Region region = allocate(hip, size);
      std::string expected = bytes;
      EXPECT_TRUE(copy(region, host(expected)).ok());
      size_t length = size - distance;
      size_t to = up ? distance : 0;
      size_t from = up ? 0 : distance;
      Status moved = move(region.slice(to, length), region.slice(from, length));
      EXPECT_TRUE(moved.ok()) << moved.toString();
      expected.replace(to, length, bytes.substr(from, length));
      EXPECT_TRUE(read(region) == expected) << distance << (up ? " up" : " down");
      release(region);
    }
  }
}

TEST_F(TwoVendors, refuseToCopyToDevicesThatAreNotThere) {
  Region region = allocate(hip, 100);
  std::string bytes(100, 'x');
  Region beyond = region;
  beyond.device.index = 9;
  EXPECT_EQ(copy(beyond, host(bytes)).code(), Code::invalidArgument);
  Region elsewhere = region;
  elsewhere.device = Device{DeviceKind::musa, 9};
  EXPECT_EQ(copy(elsewhere, region).code(), Code::invalidArgument);
  release(region);
}

}  // namespace
}  // namespace hmc
