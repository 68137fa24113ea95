#include "transport/ipc/key.h"

#include <gtest/gtest.h>

#include <functional>
#include <vector>

namespace hmc::ipc {

namespace {

Description sample() {
  Description what;
  what.access = Access::readWrite;
  what.device = {DeviceKind::hip, 3};
  what.size = 12345;
  what.shareFds = 2;
  what.shareHandle = "vendor bytes";
  what.shareOffset = 4096;
  what.notShared = "a reason";
  what.processVm = true;
  what.address = 0x123456789000;
  what.nonceAddress = 0x10;
  what.nonce = std::string(kNonceSize, 'n');
  what.page = true;
  what.region = 9;
  return what;
}

}  // namespace

TEST(IpcKey, tellsNothingAboutTheMemory) {
  const std::string good = encode(Key{std::string(kTokenSize, 't')});
  EXPECT_EQ(good.size(), sizeof(uint32_t) + kTokenSize);
  const auto back = decodeKey(good);
  ASSERT_TRUE(back.ok()) << back.status().toString();
  EXPECT_EQ(back->token, std::string(kTokenSize, 't'));
  for (size_t size = 0; size < good.size(); ++size) {
    EXPECT_EQ(decodeKey(good.substr(0, size)).status().code(), Code::invalidArgument) << size;
  }
  EXPECT_FALSE(decodeKey(good + "x").ok());
}

TEST(IpcDescription, comesBackAsItWas) {
  auto back = decodeDescription(encode(sample()));
  ASSERT_TRUE(back.ok()) << back.status().toString();
  EXPECT_EQ(encode(*back), encode(sample()));
  EXPECT_EQ(back->device.toString(), "hip:3");
  EXPECT_EQ(back->size, 12345u);
  EXPECT_EQ(back->access, Access::readWrite);
  EXPECT_TRUE(back->processVm);
}

TEST(IpcDescription, everyTruncationAndExtensionIsRefused) {
  std::string good = encode(sample());
  for (size_t size = 0; size < good.size(); ++size) {
    EXPECT_EQ(decodeDescription(good.substr(0, size)).status().code(), Code::invalidArgument)
        << size;
  }
  EXPECT_EQ(decodeDescription(good + "x").status().code(), Code::invalidArgument);
}

TEST(IpcDescription, valuesThatMakeNoSenseAreRefused) {
  std::vector<std::function<void(Description&)>> damages = {
      [](Description& what) { what.size = 0; },
      [](Description& what) { what.shareFds = Share::kMostPieces + 1; },
      [](Description& what) { what.device.index = -1; },
      [](Description& what) { what.address = UINT64_MAX - 100; },
      [](Description& what) { what.shareOffset = UINT64_MAX - 100; },
      [](Description& what) { what.access = static_cast<Access>(2); },
  };
  for (size_t i = 0; i < damages.size(); ++i) {
    Description what = sample();
    damages[i](what);
    EXPECT_EQ(decodeDescription(encode(what)).status().code(), Code::invalidArgument)
        << "damage " << i;
  }
}

TEST(IpcDescription, damagedBytesNeverDoMoreThanFail) {
  std::string good = encode(sample());
  for (size_t i = 0; i < good.size(); ++i) {
    for (int value : {0x00, 0x01, 0x7f, 0x80, 0xff}) {
      std::string bad = good;
      bad[i] = static_cast<char>(value);
      auto what = decodeDescription(bad);
      EXPECT_TRUE(!what.ok() || encode(*what) == bad) << "byte " << i << " was misread";
    }
  }
}

TEST(IpcAddress, comesBackAndRefusesDamage) {
  Address address{"hmc-exchange", std::string(kTokenSize, 'l')};
  std::string good = encode(address);
  auto back = decodeAddress(good);
  ASSERT_TRUE(back.ok()) << back.status().toString();
  EXPECT_EQ(encode(*back), good);
  for (size_t size = 0; size < good.size(); ++size) {
    EXPECT_EQ(decodeAddress(good.substr(0, size)).status().code(), Code::invalidArgument) << size;
  }
  EXPECT_FALSE(decodeAddress(good + "x").ok());
  EXPECT_FALSE(decodeAddress(encode(Key{std::string(kTokenSize, 't')})).ok());
}

}  // namespace hmc::ipc
