#include "etcd/etcd_server.h"
#include "pool_members.h"

// A pool whose store is an etcd, and so outlives every process of the pool.
namespace hmc::test {
namespace {

const std::string kEtcdOptions = "capacity=4 host=2097152 heartbeat=200 lease=2000";

class PoolInEtcd : public PoolTest {
 protected:
  void SetUp() override {
    if (!EtcdServer::isInstalled()) GTEST_SKIP() << EtcdServer::kMissing;
    etcd_ = std::make_unique<EtcdServer>();
    store_ = etcd_->url();
  }
  // Members leave before their store goes.
  void TearDown() override { members_.clear(); }

  std::unique_ptr<EtcdServer> etcd_;
};

TEST_F(PoolInEtcd, membersJoinCopyDieAndComeBack) {
  PoolMember& first = member(0, kEtcdOptions);
  PoolMember& second = member(1, kEtcdOptions);
  expectOk(first.ask("event"), "joined 1");
  expectOk(first.ask("put 1 host 0 100000 3"));
  expectOk(second.ask("load 1 host 0 100000 3"), "same");
  second.kill();
  expectOk(first.ask("event"), "left 1");
  awaitMembers(first, 1);
  PoolMember& third = member(1, kEtcdOptions);
  expectOk(first.ask("event"), "joined 1");
  expectOk(third.ask("put 0 host 0 100000 4"));
  expectOk(first.ask("load 0 host 0 100000 4"), "same");
}

TEST_F(PoolInEtcd, copiesGoOnWhileEtcdIsDown) {
  PoolMember& first = member(0, kEtcdOptions);
  PoolMember& second = member(1, kEtcdOptions);
  etcd_->kill(0);
  expectOk(first.ask("put 1 host 0 100000 3"));
  expectOk(second.ask("load 1 host 0 100000 3"), "same");
  etcd_->start(0);
  member(2, kEtcdOptions);
}

}  // namespace
}  // namespace hmc::test
