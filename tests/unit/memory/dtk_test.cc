// Runs with the fakes of Hygon's and AMD's libraries in LD_LIBRARY_PATH.

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "memory/backends.h"
#include "memory/copy.h"

namespace hmc {
namespace {

// It is taken although AMD's comes first, because the process has it already.
TEST(Dtk, isHipUnderAnotherName) {
  ASSERT_TRUE(dlopen("libgalaxyhip.so.5", RTLD_NOW));
  auto found = findBackend(Device{DeviceKind::hip, 1});
  ASSERT_TRUE(found.ok()) << found.status().toString();
  EXPECT_THAT((*found)->facts().name, testing::HasSubstr("DTK"));
  auto region = (*found)->allocate(1, 5000);
  ASSERT_TRUE(region.ok()) << region.status().toString();
  std::string bytes(5000, 'x');
  std::string back(5000, '?');
  EXPECT_TRUE(copy(*region, {bytes.data(), bytes.size(), Device{}}).ok());
  EXPECT_TRUE(copy({back.data(), back.size(), Device{}}, *region).ok());
  EXPECT_EQ(back, bytes);
  EXPECT_EQ((*found)->locate(region->at(4999))->ptr, region->ptr);
  auto share = (*found)->share(*region, ShareFor::nic);
  EXPECT_EQ(share.status().code(), Code::unsupported);
  EXPECT_THAT(share.status().message(), testing::HasSubstr("DTK exports no dma-buf"));
  EXPECT_TRUE((*found)->release(region->ptr).ok());
}

// Runs once more by itself, with a library of AMD's that finds no device.
TEST(Dtk, isTakenWhereAmdsLibraryFindsNoDevice) {
  auto found = findBackend(DeviceKind::hip);
  ASSERT_TRUE(found.ok()) << found.status().toString();
  EXPECT_THAT((*found)->facts().name, testing::HasSubstr("DTK"));
  EXPECT_EQ((*found)->facts().deviceCount(), 2);
}

}  // namespace
}  // namespace hmc
