#include "base/codec.h"

#include <gtest/gtest.h>

namespace hmc {

TEST(Codec, readsWhatWasWritten) {
  Writer out;
  out.u8(0xab).u16(0xcdef).u32(0x01234567).u64(0x89abcdef01234567).string("text").raw("raw");
  Reader in(out.bytes());
  EXPECT_EQ(in.u8(), 0xab);
  EXPECT_EQ(in.u16(), 0xcdef);
  EXPECT_EQ(in.u32(), 0x01234567u);
  EXPECT_EQ(in.u64(), 0x89abcdef01234567u);
  EXPECT_EQ(in.string(), "text");
  EXPECT_EQ(in.left(), 3u);
  EXPECT_EQ(in.raw(3), "raw");
  EXPECT_TRUE(in.finish("it").ok());
}

TEST(Codec, isLittleEndian) {
  EXPECT_EQ(Writer().u32(0x01020304).take(), std::string("\x04\x03\x02\x01"));
  EXPECT_EQ(Writer().string("a").take(), std::string("\x01\0\0\0a", 5));
}

TEST(Codec, remembersThatTheEndWasPassed) {
  Reader in("abc");
  EXPECT_EQ(in.u32(), 0u);
  EXPECT_TRUE(in.failed());
  EXPECT_EQ(in.u8(), 0u) << "what is left after a failure must not be read as something else";
  Status status = in.finish("a greeting");
  EXPECT_EQ(status.code(), Code::invalidArgument);
  EXPECT_NE(status.message().find("a greeting"), std::string::npos);
}

TEST(Codec, refusesBytesAfterTheLastField) {
  Reader in("abc");
  in.u8();
  Status status = in.finish("a greeting");
  EXPECT_EQ(status.code(), Code::invalidArgument);
  EXPECT_NE(status.message().find("2 bytes"), std::string::npos) << status.message();
}

TEST(Codec, aStringLongerThanTheRestIsEmptyAndRemembered) {
  std::string bytes = Writer().u32(0xffffffff).raw("abc").take();
  Reader in(bytes);
  EXPECT_EQ(in.string(), "");
  EXPECT_TRUE(in.failed());
}

}  // namespace hmc
