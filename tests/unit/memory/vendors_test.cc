// Runs with the fake libraries of all vendors in LD_LIBRARY_PATH.

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "memory/backends.h"
#include "memory/copy.h"
#include "memory/device_pins.h"
#include "memory/runtime.h"
#include "unit/memory/host_region.h"

namespace hmc {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

struct Vendor {
  DeviceKind kind;
  const char* library;
  friend void PrintTo(const Vendor& one, std::ostream* out) { *out << deviceKindName(one.kind); }
};

constexpr Vendor kVendors[] = {
    {DeviceKind::hip, "libamdhip64.so.6"},
    {DeviceKind::musa, "libmusart.so"},
    {DeviceKind::acl, "libascendcl.so"},
    {DeviceKind::cnrt, "libcnrt.so"},
};

class Vendors : public testing::TestWithParam<Vendor> {
 protected:
  static Backend& backendOf(DeviceKind kind) {
    auto found = findBackend(kind);
    EXPECT_TRUE(found.ok()) << found.status().toString();
    return **found;
  }
  static Region allocate(const Device& device, size_t size) {
    auto made = backendOf(device.kind).allocate(device.index, size);
    EXPECT_TRUE(made.ok()) << made.status().toString();
    return made.ok() ? *made : Region{};
  }
  template <class Function>
  static Function* symbol(const char* name) {
    void* library = dlopen(GetParam().library, RTLD_NOW | RTLD_NOLOAD);
    EXPECT_NE(library, nullptr);
    return reinterpret_cast<Function*>(dlsym(library, name));
  }
  Backend& backend = backendOf(GetParam().kind);
};

TEST_P(Vendors, haveTwoDevicesOfDifferentUuids) {
  ASSERT_EQ(backend.facts().deviceCount(), 2);
  EXPECT_NE(backend.facts().devices[0].uuid, backend.facts().devices[1].uuid);
}

TEST_P(Vendors, copyToEachOtherThroughPinnedMemory) {
  const size_t size = (size_t{5} << 20) + 3;
  std::string bytes(size, '\0');
  for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<char>(i * 13 % 251);
  Region first = allocate({GetParam().kind, 1}, size);
  ASSERT_TRUE(copy(first, host(bytes)).ok());
  for (const Vendor& other : kVendors) {
    if (other.kind == GetParam().kind) continue;
    Region second = allocate({other.kind, 0}, size);
    Status copied = copy(second, first);
    EXPECT_TRUE(copied.ok()) << copied.toString();
    std::string back(size, '?');
    EXPECT_TRUE(copy(host(back), second).ok());
    EXPECT_TRUE(back == bytes);
    EXPECT_TRUE(backendOf(other.kind).release(second.ptr).ok());
  }
  EXPECT_TRUE(backend.release(first.ptr).ok());
}

TEST_P(Vendors, refuseToReserveAddresses) {
  EXPECT_EQ(backend.reserve(1 << 20).status().code(), Code::unsupported);
}

// As a NIC would be given the memory.
TEST_P(Vendors, exportADmaBufWhereTheVendorHasIt) {
  Region region = allocate({GetParam().kind, 0}, 10000);
  auto share = backend.share(region.slice(5000, 100), ShareFor::nic);
  EXPECT_EQ(share.ok(), GetParam().kind == DeviceKind::hip) << share.status().toString();
  if (!share.ok()) {
    EXPECT_THAT(share.status().message(), HasSubstr("dma-buf"));
  }
  EXPECT_TRUE(backend.release(region.ptr).ok());
}

TEST_P(Vendors, pinAsMuchHostMemoryAsTheVendorAllows) {
  const size_t size = size_t{200} << 20;
  std::string first(size, '\0');
  std::string second(size, '\0');
  auto one = backend.pin(host(first));
  ASSERT_TRUE(one.ok()) << one.status().toString();
  auto two = backend.pin(host(second));
  if (GetParam().kind == DeviceKind::cnrt) {
    EXPECT_EQ(two.status().code(), Code::exhausted);
    EXPECT_THAT(two.status().message(), HasSubstr("256 MiB"));
    one = Status(Code::failed, "unpinned");
    EXPECT_TRUE(backend.pin(host(second)).ok());
  } else {
    EXPECT_TRUE(two.ok()) << two.status().toString();
  }
}

// Nothing that we do may move the caller to another device.
TEST_P(Vendors, leaveTheThreadsDeviceAlone) {
  auto* current = symbol<int()>("hmcFakeCurrentDevice");
  const int before = 1;
  symbol<void(int)>("hmcFakeUseDevice")(before);
  Region region = allocate({GetParam().kind, 0}, 5000);
  std::string bytes(5000, 'x');
  EXPECT_TRUE(copy(region, host(bytes)).ok());
  EXPECT_EQ(current(), before);
  EXPECT_TRUE(backend.release(region.ptr).ok());
  EXPECT_EQ(current(), before);
}

TEST_P(Vendors, locateWhatOthersAllocated) {
  Region region = allocate({GetParam().kind, 1}, 9000);
  // Another object for the same library knows nothing of it but what the library says.
  auto found = backend.locate(region.at(8999));
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(found->device, region.device);
  symbol<void(int)>("hmcFakeUseDevice")(0);
  auto* allocateThere = symbol<void*(size_t)>("hmcFakeAllocate");
  auto* ptr = static_cast<char*>(allocateThere(7000));
  found = backend.locate(ptr + 6999);
  ASSERT_TRUE(found.ok()) << found.status().toString();
  EXPECT_EQ(found->ptr, ptr);
  EXPECT_EQ(found->size, 7000u);
  EXPECT_FALSE(backend.locate(ptr + 7000).ok());
  auto share = backend.share({ptr + 100, 500, found->device}, ShareFor::process);
  ASSERT_TRUE(share.ok()) << share.status().toString();
  EXPECT_EQ(share->offset, 100u);
  EXPECT_TRUE(backend.release(region.ptr).ok());
}

// The last one: the device does not come back.
TEST_P(Vendors, reportADeviceThatFails) {
  Region region = allocate({GetParam().kind, 1}, 5000);
  auto event = backend.event(1);
  ASSERT_TRUE(event.ok());
  ASSERT_TRUE((*event)->record({region.device}).ok());
  symbol<void(int)>("hmcFakeFailDevice")(1);
  EXPECT_FALSE((*event)->passed().ok());
  std::string bytes(5000, 'x');
  Status status = copy(region, host(bytes));
  EXPECT_FALSE(status.ok());
  Region fine = allocate({GetParam().kind, 0}, 5000);
  EXPECT_TRUE(copy(fine, host(bytes)).ok());
}

INSTANTIATE_TEST_SUITE_P(All, Vendors, testing::ValuesIn(kVendors),
                         [](const auto& one) { return deviceKindName(one.param.kind); });

TEST(UuidOfPciAddress, isTheSameHoweverItIsWritten) {
  EXPECT_EQ(uuidOfPciAddress("0000:3B:00.0"), uuidOfPciAddress("00000000:3b:00.0"));
  EXPECT_NE(uuidOfPciAddress("0000:3b:00.0"), uuidOfPciAddress("0000:3c:00.0"));
  EXPECT_NE(uuidOfPciAddress("0000:3b:00.0"), DeviceUuid{});
}

}  // namespace
}  // namespace hmc
