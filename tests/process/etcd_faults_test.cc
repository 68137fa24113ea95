#include <gtest/gtest.h>

#include "calling_process.h"
#include "etcd/etcd_server.h"

// A client of an etcd makes all calls of a store while the etcd is killed or stopped.
namespace hmc::test {
namespace {

class EtcdFaults : public testing::Test {
 protected:
  void SetUp() override {
    if (!EtcdServer::isInstalled()) GTEST_SKIP() << EtcdServer::kMissing;
    etcd_ = std::make_unique<EtcdServer>();
    client_ = std::make_unique<CallingProcess>("store", "tcp", "");
    client_->make("tcp", "127.0.0.1", true);
    (void)client_->introduction();
    client_->meet(etcd_->urlOfItsOwn());
    client_->begin();
    client_->allEnd();
  }
  // Each call ends twice from now on.
  void goesOn() {
    client_->mark();
    client_->allEnd();
  }
  void TearDown() override {
    if (!client_) return;
    client_->end();
    client_->expectInTime();
  }

  std::unique_ptr<EtcdServer> etcd_;
  std::unique_ptr<CallingProcess> client_;
};

TEST_F(EtcdFaults, everyCallEndsWhenItIsKilled) {
  etcd_->kill(0);
  goesOn();
}

TEST_F(EtcdFaults, everyCallEndsWhileItIsStopped) {
  etcd_->stop(0);
  goesOn();
}

}  // namespace
}  // namespace hmc::test
