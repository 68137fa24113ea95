#include "control/frame.h"

#include <gtest/gtest.h>

#include <random>

#include "base/codec.h"
#include "base/crc32c.h"

namespace hmc::control {
namespace {

TEST(Frame, comesOutAsItWentIn) {
  auto header = frameHeader(FrameType::message, 2, 0xbeef, "a", "bc");
  FrameReader reader(100);
  reader.feed({header.data(), header.size()});
  reader.feed("abc");
  auto frame = reader.next();
  ASSERT_TRUE(frame.ok() && *frame);
  EXPECT_EQ((*frame)->type, FrameType::message);
  EXPECT_EQ((*frame)->detail, 2);
  EXPECT_EQ((*frame)->flags, 0xbeef);
  EXPECT_EQ((*frame)->payload, "abc");
  EXPECT_TRUE(reader.empty());
}

TEST(Frame, isLittleEndianOnTheWire) {
  auto header = sealedHeader(FrameType::call, 7, 0x0102, 0x01020304, 0x0a0b0c0d);
  const std::string covered("\x04\x03\x02\x01\x11\x07\x02\x01\x0d\x0c\x0b\x0a", 12);
  EXPECT_EQ(std::string(header.data(), header.size()),
            covered + Writer().u32(crc32c(0, covered.data(), covered.size())).bytes());
}

TEST(Frame, survivesArrivingByteByByte) {
  std::string bytes = frameBytes(FrameType::ping, "12345678") + frameBytes(FrameType::drain) +
                      frameBytes(FrameType::pong, "abcdefgh");
  FrameReader reader(100);
  std::vector<std::string> seen;
  for (char byte : bytes) {
    reader.feed({&byte, 1});
    auto frame = reader.next();
    ASSERT_TRUE(frame.ok());
    if (*frame) seen.emplace_back((*frame)->payload);
  }
  EXPECT_EQ(seen, (std::vector<std::string>{"12345678", "", "abcdefgh"}));
}

TEST(Frame, ofFourGigabytesIsRefusedByItsHeaderAlone) {
  auto header = sealedHeader(FrameType::message, 0, 0, 0xffffffffu, 0);
  FrameReader reader(kLargestFrame);
  reader.feed({header.data(), header.size()});
  auto frame = reader.next();
  ASSERT_FALSE(frame.ok());
  EXPECT_NE(frame.status().message().find("4294967295"), std::string::npos);
}

TEST(Frame, ofExactlyTheLimitPassesAndOneByteMoreDoesNot) {
  FrameReader good(5);
  good.feed(frameBytes(FrameType::ping, "12345"));
  EXPECT_TRUE(good.next().ok());
  FrameReader bad(5);
  bad.feed(frameBytes(FrameType::ping, "123456"));
  EXPECT_FALSE(bad.next().ok());
}

TEST(Frame, readerTellsHowMuchIsMissing) {
  FrameReader reader(100);
  EXPECT_EQ(reader.missing(), kFrameHeader);
  std::string bytes = frameBytes(FrameType::ping, "12345678");
  reader.feed(std::string_view(bytes).substr(0, 3));
  EXPECT_EQ(reader.missing(), kFrameHeader - 3);
  reader.feed(std::string_view(bytes).substr(3, kFrameHeader - 2));
  ASSERT_TRUE(reader.next().ok());
  EXPECT_EQ(reader.missing(), 7u);
}

// Whatever a byte says: the length, the type, a call's number.
TEST(Frame, withAnyBitChangedIsAnErrorAtOnce) {
  const std::string bytes = frameBytes(FrameType::answer, "12345678 and an answer");
  for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    std::string changed = bytes;
    changed[bit / 8] = static_cast<char>(changed[bit / 8] ^ (1 << bit % 8));
    FrameReader reader(kLargestFrame);
    reader.feed(changed);
    const auto frame = reader.next();
    ASSERT_FALSE(frame.ok()) << "bit " << bit;
    EXPECT_NE(frame.status().message().find("altered on the way"), std::string::npos)
        << frame.status().message();
  }
}

// The next frames, such as the next heartbeat, are taken for the bytes that are missing.
TEST(Frame, thatLostBytesIsAnErrorAsSoonAsOthersCome) {
  const std::string bytes = frameBytes(FrameType::answer, "12345678 and an answer");
  const std::string ping = frameBytes(FrameType::ping, "12345678");
  for (size_t lost = 1; lost < ping.size(); ++lost) {
    FrameReader reader(kLargestFrame);
    reader.feed(bytes.substr(0, 3) + bytes.substr(3 + lost) + ping);
    EXPECT_FALSE(reader.next().ok()) << lost << " bytes lost";
  }
}

TEST(Frame, cutAndChangedNeverYieldsMoreThanCameIn) {
  std::mt19937 random(7);
  for (int round = 0; round < 2000; ++round) {
    FrameReader reader(64);
    size_t fed = 0;
    size_t got = 0;
    for (int i = 0; i < 20; ++i) {
      std::string bytes = frameBytes(FrameType::ping, std::string(random() % 70, 'p'));
      if (random() % 8 == 0) bytes.resize(1 + random() % (bytes.size() - 1));
      if (random() % 8 == 0) bytes[random() % bytes.size()] = static_cast<char>(random());
      fed += bytes.size();
      reader.feed(bytes);
      auto frame = reader.next();
      while (frame.ok() && *frame) {
        got += kFrameHeader + (*frame)->payload.size();
        frame = reader.next();
      }
      if (!frame.ok()) break;
    }
    ASSERT_LE(got, fed);
  }
}

TEST(Frame, aFrameThatIsPutBackComesAgainAlsoAfterMoreBytes) {
  FrameReader reader(100);
  reader.feed(frameBytes(FrameType::ping, "one") + frameBytes(FrameType::pong, "two"));
  ASSERT_EQ((**reader.next()).payload, "one");
  ASSERT_EQ((**reader.next()).payload, "two");
  reader.putBack();
  reader.feed(frameBytes(FrameType::bye, "three"));
  EXPECT_EQ((**reader.next()).payload, "two");
  EXPECT_EQ((**reader.next()).payload, "three");
  EXPECT_TRUE(reader.empty());
}

}  // namespace
}  // namespace hmc::control
