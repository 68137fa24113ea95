#include "memory/device_of.h"

#include <dlfcn.h>
#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstdlib>
#include <vector>

namespace hmc {
namespace {

using testing::HasSubstr;

constexpr size_t kPageSize = 4096;

void expectNobodys(const void* ptr) {
  auto device = deviceOf(ptr);
  ASSERT_FALSE(device.ok()) << device->toString();
  EXPECT_EQ(device.status().code(), Code::invalidArgument);
  EXPECT_THAT(device.status().message(), HasSubstr(fmt::format("{}", ptr)));
}

TEST(DeviceOf, knowsHostMemoryOfEverySort) {
  static const char kConstant[] = "text";
  int local = 0;
  std::vector<char> heap(3);
  void* readOnly = mmap(nullptr, kPageSize, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  for (const void* ptr : {static_cast<const void*>(&local), static_cast<const void*>(&kConstant[1]),
                          static_cast<const void*>(heap.data() + 1),
                          static_cast<const void*>(static_cast<char*>(readOnly) + kPageSize - 1)}) {
    auto device = deviceOf(ptr);
    ASSERT_TRUE(device.ok()) << device.status().toString();
    EXPECT_EQ(*device, Device{});
  }
  munmap(readOnly, kPageSize);
}

TEST(DeviceOf, doesNotTakeWhatTheProcessorCannotReadForHostMemory) {
  void* reserved = mmap(nullptr, kPageSize, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  expectNobodys(reserved);
  munmap(reserved, kPageSize);
  expectNobodys(reserved);
  expectNobodys(reinterpret_cast<void*>(uintptr_t{16}));
  expectNobodys(reinterpret_cast<void*>(~uintptr_t{0} - 100));
  EXPECT_EQ(deviceOf(nullptr).status().code(), Code::invalidArgument);
}

// Whoever loads a vendor's library later may have its pointers from then on.
TEST(DeviceOf, asksVendorsWhoseLibraryCameAfterTheLastCall) {
  const auto* nobodys = reinterpret_cast<void*>(uintptr_t{16});
  auto before = deviceOf(nobodys);
  EXPECT_THAT(before.status().message(), testing::Not(HasSubstr("MUSA")));
  void* library = dlopen(HMC_VENDOR_LIBRARY, RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(library, nullptr) << dlerror();
  for (int again = 0; again < 2; ++again) {
    EXPECT_THAT(deviceOf(nobodys).status().message(), HasSubstr("MUSA"));
  }
  int local = 0;
  EXPECT_EQ(*deviceOf(&local), Device{});
  dlclose(library);
}

TEST(DeviceOf, leavesErrnoAlone) {
  int local = 0;
  errno = 77;
  EXPECT_TRUE(deviceOf(&local).ok());
  EXPECT_FALSE(deviceOf(reinterpret_cast<void*>(uintptr_t{16})).ok());
  EXPECT_EQ(errno, 77);
}

}  // namespace
}  // namespace hmc
