#include <gtest/gtest.h>

#include "transport/verbs/address.h"

namespace hmc::verbs {
namespace {

Address example() {
  Address address;
  address.places.resize(2);
  address.places[0] = {{0xfe, 0x80}, 7, 5, 16, false};
  address.places[1] = {{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 8, 0, 1}, 0, 3, 1, true};
  address.words = {1, 0x123456, 0x00ffffff};
  address.outgoing = {{0, 10, 11}, {1, 12, 13}};
  address.incoming = {{0, 20, 0}, {1, 21, 0}, {0, 22, 0}};
  return address;
}

TEST(VerbsAddress, isReadAsItWasWritten) {
  const std::string bytes = example().encode();
  auto read = Address::decode(bytes);
  ASSERT_TRUE(read.ok()) << read.status().toString();
  EXPECT_EQ(read->encode(), bytes);
  EXPECT_EQ(read->places[1].gid, example().places[1].gid);
  EXPECT_TRUE(read->places[1].ethernet);
  EXPECT_EQ(read->words.number, 0x123456u);
  EXPECT_EQ(read->outgoing[1].firstPacket, 13u);
  EXPECT_EQ(read->incoming[2].number, 22u);
}

TEST(VerbsAddress, thatIsCutOrLongerIsRefused) {
  const std::string bytes = example().encode();
  for (size_t size = 0; size < bytes.size(); ++size)
    EXPECT_FALSE(Address::decode(bytes.substr(0, size)).ok()) << size;
  EXPECT_FALSE(Address::decode(bytes + "x").ok());
}

TEST(VerbsAddress, thatMakesNoSenseIsRefused) {
  Address none = example();
  none.incoming.clear();
  EXPECT_FALSE(Address::decode(none.encode()).ok()) << "nowhere to ask";
  Address nowhere = example();
  nowhere.outgoing[0].place = 2;
  EXPECT_FALSE(Address::decode(nowhere.encode()).ok()) << "a port that it does not have";
  Address packets = example();
  packets.places[0].mtu = 6;
  EXPECT_FALSE(Address::decode(packets.encode()).ok()) << "packets of no size that there is";
}

}  // namespace
}  // namespace hmc::verbs
