#include "pool_members.h"

// Device slots: of the real driver where there is one, else of the fake one.
namespace hmc::test {
namespace {

const std::string kOptions = "capacity=4 on=cuda:0 host=8388608 device=33554432";

TEST_F(PoolTest, deviceSlotsAreMappedAtTheSameAddresses) {
  PoolMember& first = member(0, kOptions);
  PoolMember& second = member(1, kOptions);
  for (int rank : {0, 1}) {
    const std::string ask = "slot " + std::to_string(rank) + " device";
    const Reply here = first.ask(ask);
    EXPECT_NE(here.text.find(" 33554432 mapped"), std::string::npos) << here;
    EXPECT_EQ(here.text, second.ask(ask).text);
  }
}

TEST_F(PoolTest, copiesReachDeviceSlotsFromHostAndDevice) {
  PoolMember& first = member(0, kOptions);
  PoolMember& second = member(1, kOptions);
  PoolMember& third = member(2, kOptions);
  for (size_t size : {size_t{8}, size_t{4096}, kMiB + 3, 20 * kMiB}) {
    const std::string bytes = std::to_string(size);
    expectOk(first.ask("put 1 device 64 " + bytes + " 5"));
    expectOk(second.ask("get 1 device 64 " + bytes + " 5"), "same");
    // Into our own, from our own, and between two others.
    expectOk(first.ask("move 1 device 64 " + bytes + " 0 0 device 128"));
    expectOk(first.ask("get 0 device 128 " + bytes + " 5"), "same");
    expectOk(first.ask("move 0 device 128 " + bytes + " 0 2 device 0"));
    expectOk(third.ask("get 2 device 0 " + bytes + " 5"), "same");
    expectOk(second.ask("move 0 device 128 " + bytes + " 0 2 device 256"));
    expectOk(third.ask("get 2 device 256 " + bytes + " 5"), "same");
    if (size > 8 * kMiB) continue;
    // Between device and host slots.
    expectOk(third.ask("move 1 device 64 " + bytes + " 0 0 host 0"));
    expectOk(first.ask("load 0 host 0 " + bytes + " 5"), "same");
    expectOk(third.ask("move 0 host 0 " + bytes + " 0 2 device 512"));
    expectOk(third.ask("get 2 device 512 " + bytes + " 5"), "same");
  }
  expectOk(first.ask("scatter 1 device 0 2000 3"), "same");
  expectOk(first.ask("between 1 device 64 2000 4"), "same");
  expectOk(first.ask("rows 2 device 0 1000 3"), "same");
}

TEST_F(PoolTest, theDeviceSlotOfAKilledMemberIsGivenAgain) {
  PoolMember& first = member(0, kOptions);
  PoolMember& second = member(1, kOptions);
  expectOk(first.ask("event"), "joined 1");
  for (int round = 0; round < 3; ++round) {
    PoolMember& victim = round == 0 ? second : *members_.back();
    expectOk(first.ask("put 1 device 0 100000 1"));
    victim.kill();
    expectOk(first.ask("event"), "left 1");
    EXPECT_EQ(first.ask("put 1 device 0 8 1").code, "not_found");
    awaitMembers(first, 1);
    PoolMember& again = member(1, kOptions);
    expectOk(first.ask("event"), "joined 1");
    expectOk(first.ask("put 1 device 0 100000 6"));
    expectOk(again.ask("get 1 device 0 100000 6"), "same");
  }
}

// A member without an accelerator brings host memory in the place of a device's.
TEST_F(PoolTest, membersWithAndWithoutAnAcceleratorMix) {
  PoolMember& device = member(0, kOptions);
  PoolMember& host = member(1, "host=8388608 device=33554432");
  expectOk(device.ask("put 1 device 0 1000000 2"));
  expectOk(host.ask("load 1 device 0 1000000 2"), "same");
  expectOk(host.ask("put 0 device 0 1000000 3"));
  expectOk(device.ask("get 0 device 0 1000000 3"), "same");
  expectOk(host.ask("move 0 device 0 1000000 0 1 device 64"));
  expectOk(host.ask("load 1 device 64 1000000 3"), "same");
}

}  // namespace
}  // namespace hmc::test
