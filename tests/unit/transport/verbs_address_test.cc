#include <gtest/gtest.h>

#include "transport/verbs/address.h"

namespace hmc::verbs {
namespace {

Address example() {
  Address address;
  address.ports.resize(2);
  address.ports[0] = {{0xfe, 0x80}, 7, 5, 16, false};
  address.ports[1] = {{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 8, 0, 1}, 0, 3, 1, true};
  address.control = {1, 0x123456, 0x00ffffff};
  address.outgoing = {{0, 10, 11}, {1, 12, 13}};
  address.incoming = {{0, 20, 0}, {1, 21, 0}, {0, 22, 0}};
  return address;
}

TEST(VerbsAddress, isReadAsItWasWritten) {
  const std::string bytes = example().encode();
  auto read = Address::decode(bytes);
  ASSERT_TRUE(read.ok()) << read.status().toString();
  EXPECT_EQ(read->encode(), bytes);
  EXPECT_EQ(read->ports[1].gid, example().ports[1].gid);
  EXPECT_TRUE(read->ports[1].ethernet);
  EXPECT_EQ(read->control.number, 0x123456u);
  EXPECT_EQ(read->outgoing[1].psn, 13u);
  EXPECT_EQ(read->incoming[2].number, 22u);
}

TEST(VerbsAddress, thatIsCutOrLongerIsRefused) {
  const std::string bytes = example().encode();
  for (size_t size = 0; size < bytes.size(); ++size)
    EXPECT_FALSE(Address::decode(bytes.substr(0, size)).ok()) << size;
  EXPECT_FALSE(Address::decode(bytes + "x").ok());
}

TEST(VerbsAddress, thatContradictsItselfIsRefused) {
  Address none = example();
  none.incoming.clear();
  EXPECT_FALSE(Address::decode(none.encode()).ok()) << "nowhere to ask";
  Address nowhere = example();
  nowhere.outgoing[0].port = 2;
  EXPECT_FALSE(Address::decode(nowhere.encode()).ok()) << "a port that it does not have";
  Address packets = example();
  packets.ports[0].mtu = 6;
  EXPECT_FALSE(Address::decode(packets.encode()).ok()) << "packets of no size that there is";
}

}  // namespace
}  // namespace hmc::verbs
