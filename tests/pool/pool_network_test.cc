#include "pool_members.h"

// Members of two hosts: network namespaces that a virtual cable joins.
namespace hmc::test {
namespace {

class PoolNetworkTest : public PoolTest {
 protected:
  void SetUp() override {
    if (!cable_.whyNot().empty()) GTEST_SKIP() << cable_.whyNot();
    keeper_ = std::make_unique<PoolMember>(cable_.left());
    const Reply started = keeper_->ask("store tcp://" + Cable::leftAddress() + ":0");
    ASSERT_TRUE(started.ok) << started;
    store_ = started.text;
  }
  void TearDown() override {
    members_.clear();
    keeper_.reset();
  }

  PoolMember& on(const std::string& host, uint32_t rank, const std::string& options) {
    members_.push_back(std::make_unique<PoolMember>(host));
    expectOk(members_.back()->join(store_, options), std::to_string(rank));
    return *members_.back();
  }

  Cable cable_;
};

const std::string kNetworkOptions = "capacity=4 host=33554432 heartbeat=200 lease=2000";

TEST_F(PoolNetworkTest, copiesReachSlotsOfOtherHosts) {
  PoolMember& left = on(cable_.left(), 0, kNetworkOptions);
  PoolMember& right = on(cable_.right(), 1, kNetworkOptions);
  PoolMember& third = on(cable_.right(), 2, kNetworkOptions);
  EXPECT_NE(left.ask("slot 1 host").text.find(" far"), std::string::npos);
  EXPECT_NE(third.ask("slot 1 host").text.find(" mapped"), std::string::npos);
  for (size_t size : {size_t{8}, size_t{100000}, 20 * kMiB}) {
    const std::string what = " host 64 " + std::to_string(size) + " 7";
    expectOk(left.ask("put 1" + what));
    expectOk(right.ask("load 1" + what), "same");
    expectOk(right.ask("put 1" + what));
    expectOk(left.ask("get 1" + what), "same");
    // To our slot and from it, and between two members of the other host, through ours.
    expectOk(left.ask("move 1" + what + " 0 host 0"));
    expectOk(left.ask("load 0 host 0 " + std::to_string(size) + " 7"), "same");
    expectOk(left.ask("move 0 host 0 " + std::to_string(size) + " 7 2 host 8192"));
    expectOk(third.ask("load 2 host 8192 " + std::to_string(size) + " 7"), "same");
    expectOk(left.ask("move 1" + what + " 2 host 4096"));
    expectOk(third.ask("load 2 host 4096 " + std::to_string(size) + " 7"), "same");
    // A slot that is mapped here goes to another host as it is.
    expectOk(third.ask("move 1" + what + " 0 host 128"));
    expectOk(left.ask("load 0 host 128 " + std::to_string(size) + " 7"), "same");
  }
  expectOk(left.ask("scatter 1 host 0 3000 4"), "same");
  expectOk(left.ask("rows 2 host 0 500 5"), "same");
  EXPECT_EQ(left.ask("put 1 host 33554431 2 1").code, "out_of_range");
}

TEST_F(PoolNetworkTest, aMemberOfAnotherHostThatIsKilledLeavesWithItsLease) {
  PoolMember& left = on(cable_.left(), 0, kNetworkOptions);
  PoolMember& right = on(cable_.right(), 1, kNetworkOptions);
  expectOk(left.ask("event"), "joined 1");
  expectOk(left.ask("put 1 host 0 100000 3"));
  right.kill();
  expectOk(left.ask("event"), "left 1");
  EXPECT_EQ(left.ask("put 1 host 0 8 3").code, "not_found");
  EXPECT_EQ(left.ask("move 0 host 0 8 3 1 host 0").code, "not_found");
  PoolMember& again = on(cable_.right(), 1, kNetworkOptions);
  expectOk(left.ask("event"), "joined 1");
  expectOk(left.ask("store-at 0 host 4096 100000 6"));
  expectOk(left.ask("move 0 host 4096 100000 6 1 host 4096"));
  expectOk(again.ask("load 1 host 4096 100000 6"), "same");
  expectOk(left.ask("put 1 host 0 100000 5"));
  expectOk(again.ask("load 1 host 0 100000 5"), "same");
}

TEST_F(PoolNetworkTest, aHostThatIsCutOffLeavesAndCopiesToItEnd) {
  PoolMember& left = on(cable_.left(), 0, kNetworkOptions);
  PoolMember& other = on(cable_.left(), 1, kNetworkOptions);
  PoolMember& right = on(cable_.right(), 2, kNetworkOptions);
  expectOk(left.ask("event"), "joined 1");
  expectOk(left.ask("event"), "joined 2");
  expectOk(left.ask("put 2 host 0 100000 3"));
  ASSERT_TRUE(cable_.cut());
  const Reply cutOff = left.ask("put 2 host 0 20000000 3");
  EXPECT_FALSE(cutOff.ok) << cutOff;
  expectOk(left.ask("event"), "left 2");
  expectOk(left.ask("put 1 host 0 100000 4"));
  expectOk(other.ask("load 1 host 0 100000 4"), "same");
  ASSERT_TRUE(cable_.mend());
  right.kill();
}

}  // namespace
}  // namespace hmc::test
