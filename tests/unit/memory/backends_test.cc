#include "memory/backends.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "memory/copy.h"

namespace hmc {
namespace {

using testing::HasSubstr;

TEST(Backends, alwaysHaveTheHost) {
  auto found = findBackend(DeviceKind::cpu);
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(*found, &hostBackend());
  EXPECT_EQ(hostBackend().facts().kind, DeviceKind::cpu);
}

TEST(Backends, sayWhichIndexDoesNotExistAndHowManyThereAre) {
  EXPECT_TRUE(findBackend(Device{}).ok());
  auto found = findBackend(Device{DeviceKind::cpu, 3});
  ASSERT_FALSE(found.ok());
  EXPECT_EQ(found.status().code(), Code::invalidArgument);
  EXPECT_THAT(found.status().message(), HasSubstr("1 device"));
}

TEST(Backends, refuseAKindThatDoesNotExist) {
  EXPECT_EQ(findBackend(static_cast<DeviceKind>(99)).status().code(), Code::invalidArgument);
}

TEST(Backends, sayWhyAnAcceleratorIsMissing) {
  for (DeviceKind kind : kDeviceKinds) {
    auto found = findBackend(kind);
    if (found.ok()) continue;  // this machine has it
    EXPECT_EQ(found.status().code(), Code::unsupported);
    EXPECT_GT(found.status().message().size(), 20u);
    EXPECT_EQ(findBackend(kind).status().message(), found.status().message());
  }
}

TEST(Copy, movesBytesOnTheHost) {
  std::string src = "hello";
  std::string dst(10, '.');
  EXPECT_TRUE(copy({dst.data(), 10, Device{}}, {src.data(), 5, Device{}}).ok());
  EXPECT_EQ(dst, "hello.....");
  EXPECT_TRUE(move({dst.data() + 2, 5, Device{}}, {dst.data(), 5, Device{}}).ok());
  EXPECT_EQ(dst, "hehello...");
}

TEST(Copy, namesTheNumbersWhenTheDestinationIsTooSmall) {
  std::string bytes(10, '.');
  Status status = copy({bytes.data(), 4, Device{}}, {bytes.data() + 5, 5, Device{}});
  EXPECT_EQ(status.code(), Code::outOfRange);
  EXPECT_THAT(status.message(),
              HasSubstr("copy of 5 bytes at offset 0 would pass the end of 4 bytes"));
}

TEST(Copy, refusesNullPointersUnlessThereIsNothingToCopy) {
  char byte = 0;
  EXPECT_EQ(copy({nullptr, 1, Device{}}, {&byte, 1, Device{}}).code(), Code::invalidArgument);
  EXPECT_EQ(copy({&byte, 1, Device{}}, {nullptr, 1, Device{}}).code(), Code::invalidArgument);
  EXPECT_TRUE(copy({nullptr, 0, Device{}}, {nullptr, 0, Device{}}).ok());
}

TEST(Copy, refusesDevicesOutsideTheirKind) {
  char bytes[2] = {};
  Region strange{bytes, 1, Device{static_cast<DeviceKind>(99), 0}};
  EXPECT_EQ(copy({bytes + 1, 1, Device{}}, strange).code(), Code::invalidArgument);
}

}  // namespace
}  // namespace hmc
