#include "transport/ucx/wire.h"

#include <gtest/gtest.h>

namespace hmc::ucx {

namespace {

const Address kAddress{77, "the target worker", "the control worker", "1.13.1"};
const Key kKey{5, 0x123456789000, 4096, Access::readWrite, "ucx's own bytes", "nothing hinders"};

// UCX believes whatever it is given, so no damage may get as far as there.
template <class Decode>
void expectEveryDamagedBitIsSeen(const std::string& good, Decode decode) {
  ASSERT_TRUE(decode(good).ok());
  for (size_t bit = 0; bit < 8 * good.size(); ++bit) {
    std::string damaged = good;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << bit % 8));
    EXPECT_FALSE(decode(damaged).ok()) << "bit " << bit;
  }
  EXPECT_FALSE(decode(good + "x").ok());
  EXPECT_FALSE(decode("").ok());
}

}  // namespace

TEST(UcxAddress, comesBackAsItWas) {
  auto back = Address::decode(kAddress.encode());
  ASSERT_TRUE(back.ok()) << back.status().toString();
  EXPECT_EQ(back->link, 77u);
  EXPECT_EQ(back->target, kAddress.target);
  EXPECT_EQ(back->control, kAddress.control);
  EXPECT_EQ(back->version, "1.13.1");
}

TEST(UcxAddress, everyDamagedBitIsSeen) {
  expectEveryDamagedBitIsSeen(kAddress.encode(), &Address::decode);
}

TEST(UcxAddress, oneWithoutAWorkerIsRefused) {
  EXPECT_FALSE(Address::decode(Address{77, "", "control", "1"}.encode()).ok());
  EXPECT_FALSE(Address::decode(Address{77, "target", "", "1"}.encode()).ok());
}

TEST(UcxKey, comesBackAsItWas) {
  auto back = Key::decode(kKey.encode());
  ASSERT_TRUE(back.ok()) << back.status().toString();
  EXPECT_EQ(back->encode(), kKey.encode());
  EXPECT_EQ(back->access, Access::readWrite);
}

TEST(UcxKey, everyDamagedBitIsSeen) {
  expectEveryDamagedBitIsSeen(kKey.encode(), &Key::decode);
}

TEST(UcxKey, oneOfNoMemoryIsRefused) {
  EXPECT_FALSE(Key::decode(Key{5, 0x1000, 0, Access::read, "", ""}.encode()).ok());
}

TEST(UcxKey, memoryThatWouldPassTheEndOfAllAddressesIsRefused) {
  Key key = kKey;
  key.address = ~uint64_t{0} - 10;
  EXPECT_FALSE(Key::decode(key.encode()).ok());
}

TEST(UcxKey, anAddressIsNoKey) {
  EXPECT_FALSE(Key::decode(kAddress.encode()).ok());
  EXPECT_FALSE(Address::decode(kKey.encode()).ok());
}

TEST(UcxServiceMessage, comesBackAsItWas) {
  for (const auto kind : {ServiceKind::hello, ServiceKind::helloAnswer, ServiceKind::goodbye,
                          ServiceKind::announcement, ServiceKind::expected}) {
    const auto back = ServiceMessage::decode(ServiceMessage{kind, 7, ~uint64_t{0}}.encode());
    ASSERT_TRUE(back.ok()) << back.status().toString();
    EXPECT_EQ(back->kind, kind);
    EXPECT_EQ(back->number, 7u);
    EXPECT_EQ(back->link, ~uint64_t{0});
  }
}

TEST(UcxServiceMessage, ofAnotherLengthOrKindIsRefused) {
  const std::string good = ServiceMessage{ServiceKind::hello, 1, 2}.encode();
  for (size_t size = 0; size < good.size(); ++size)
    EXPECT_FALSE(ServiceMessage::decode(good.substr(0, size)).ok()) << size;
  EXPECT_FALSE(ServiceMessage::decode(good + "x").ok());
  for (const char kind : {0, 6, 127}) {
    std::string other = good;
    other[0] = kind;
    EXPECT_FALSE(ServiceMessage::decode(other).ok()) << int{kind};
  }
}

}  // namespace hmc::ucx
