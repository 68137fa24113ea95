#include "transport/ipc/key.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>

namespace hmc::ipc {

namespace {

Key sample() {
  Key key;
  key.access = Access::readWrite;
  key.device = {DeviceKind::hip, 3};
  key.size = 12345;
  key.exchange = "hmc-exchange";
  key.process = std::string(kNonceSize, 'p');
  key.shareTokens = {std::string(kTokenSize, 's'), std::string(kTokenSize, 't')};
  key.shareHandle = "vendor bytes";
  key.shareOffset = 4096;
  key.notShared = "a reason";
  key.processVm = true;
  key.pid = 77;
  key.address = 0x123456789000;
  key.nonceAddress = 0x10;
  key.nonce = std::string(kNonceSize, 'n');
  key.pageToken = std::string(kTokenSize, 'b');
  key.region = 9;
  return key;
}

}  // namespace

TEST(IpcKey, comesBackAsItWas) {
  auto back = decodeKey(encode(sample()));
  ASSERT_TRUE(back.ok()) << back.status().toString();
  EXPECT_EQ(encode(*back), encode(sample()));
  EXPECT_EQ(back->device.toString(), "hip:3");
  EXPECT_EQ(back->size, 12345u);
  EXPECT_EQ(back->access, Access::readWrite);
  EXPECT_TRUE(back->processVm);
}

TEST(IpcKey, everyTruncationAndExtensionIsRefused) {
  std::string good = encode(sample());
  for (size_t size = 0; size < good.size(); ++size) {
    EXPECT_EQ(decodeKey(good.substr(0, size)).status().code(), Code::invalidArgument) << size;
  }
  EXPECT_EQ(decodeKey(good + "x").status().code(), Code::invalidArgument);
}

TEST(IpcKey, valuesThatMakeNoSenseAreRefused) {
  std::vector<std::function<void(Key&)>> damages = {
      [](Key& key) { key.size = 0; },
      [](Key& key) { key.pid = 0; },
      [](Key& key) { key.pid = -1; },
      [](Key& key) { key.exchange = ""; },
      [](Key& key) { key.exchange = std::string(200, 'x'); },
      [](Key& key) { key.shareTokens[1] = "short"; },
      [](Key& key) {
        key.shareTokens.resize(Share::kMostPieces + 1, std::string(kTokenSize, 's'));
      },
      [](Key& key) { key.pageToken = "short"; },
      [](Key& key) { key.device.index = -1; },
      [](Key& key) { key.address = UINT64_MAX - 100; },
      [](Key& key) { key.shareOffset = UINT64_MAX - 100; },
      [](Key& key) { key.access = static_cast<Access>(2); },
  };
  for (size_t i = 0; i < damages.size(); ++i) {
    Key key = sample();
    damages[i](key);
    EXPECT_EQ(decodeKey(encode(key)).status().code(), Code::invalidArgument) << "damage " << i;
  }
}

TEST(IpcKey, damagedBytesNeverDoMoreThanFail) {
  std::string good = encode(sample());
  for (size_t i = 0; i < good.size(); ++i) {
    for (int value : {0x00, 0x01, 0x7f, 0x80, 0xff}) {
      std::string bad = good;
      bad[i] = static_cast<char>(value);
      auto key = decodeKey(bad);
      EXPECT_TRUE(!key.ok() || encode(*key) == bad) << "byte " << i << " was misread";
    }
  }
}

TEST(IpcAddress, comesBackAndRefusesDamage) {
  Address address{"hmc-exchange", std::string(kNonceSize, 'p'), std::string(kNonceSize, 'l')};
  std::string good = encode(address);
  auto back = decodeAddress(good);
  ASSERT_TRUE(back.ok()) << back.status().toString();
  EXPECT_EQ(encode(*back), good);
  for (size_t size = 0; size < good.size(); ++size) {
    EXPECT_EQ(decodeAddress(good.substr(0, size)).status().code(), Code::invalidArgument) << size;
  }
  EXPECT_FALSE(decodeAddress(good + "x").ok());
  EXPECT_FALSE(decodeAddress(encode(sample())).ok()) << "a key is not an address";
}

TEST(IpcProcessNonce, differsInAChild) {
  std::string ours = processNonce();
  EXPECT_EQ(ours.size(), kNonceSize);
  EXPECT_EQ(processNonce(), ours);
  pid_t child = fork();
  if (child == 0) _exit(processNonce() == ours ? 1 : 0);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace hmc::ipc
