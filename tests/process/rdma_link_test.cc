#include <gmock/gmock.h>
#include <sys/wait.h>

#include <cstdlib>

#include "peer.h"

// Two processes with an RDMA device each, joined by a virtual cable: see tests/rdma_vm/cable.sh.
// The control channel does not use the cable, so that nobody but the RDMA transport can notice what
// happens to it.
namespace hmc::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr size_t kSize = size_t{4} << 20;
constexpr const char* kType = "RDMA";

Process::Environment with(const std::string& device) {
  return {{"HMC_RDMA_DEVICES", device},
          {"HMC_LEASE_MS", "5000"},
          {"HMC_TIMEOUT_MS", "20000"},
          {"HMC_CONNECT_TIMEOUT_MS", "10000"}};
}

class RdmaLink : public testing::Test {
 protected:
  void SetUp() override {
    if (std::getenv("HMC_TEST_RDMA_CABLE") == nullptr)
      GTEST_SKIP() << "needs two RDMA devices at the ends of a cable: make test-rdma";
    server_ = std::make_unique<Peer>(with("rxe1"));
    client_ = std::make_unique<Peer>(with("rxe2"));
    Reply served = server_->serve(kSize, kType);
    ASSERT_TRUE(served.ok) << served;
    ASSERT_TRUE(client_->allocate(kSize).ok);
    Reply connected = client_->connectTo(*server_, kType);
    ASSERT_TRUE(connected.ok) << connected;
  }
  void TearDown() override {
    if (server_ == nullptr) return;
    cable("lose 0");
    cable("mend");
  }

  static void cable(const std::string& what) {
    const std::string command = std::getenv("HMC_TEST_RDMA_CABLE") + (" " + what);
    const int status = std::system(command.c_str());  // NOLINT(cert-env33-c)
    ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << command;
  }
  void startLoop(const std::string& what) {
    const std::string size = std::to_string(kSize);
    ASSERT_TRUE(
        client_->ask("loop " + what + " " + server_->address() + " " + size + " " + kType).ok);
    ASSERT_TRUE(eventually([&] { return std::stoull(client_->ask("rounds").text) >= 3; }));
  }
  // What was under way has ended, and says that the path is to blame.
  void expectTheEnd() {
    Reply end = client_->ask("join");
    EXPECT_FALSE(end.ok);
    EXPECT_NE(end.code, "SILENT") << "it did not end in time";
    EXPECT_THAT(end.text, AllOf(HasSubstr("10.9.0.1"), HasSubstr("rxe2:1"))) << "both ends";
  }
  void expectThatItWorksAgain() {
    Reply again;
    EXPECT_TRUE(eventually([&] {
      client_->ask("disconnect " + server_->address() + " " + kType);
      again = client_->connectTo(*server_, kType);
      return again.ok;
    })) << again;
    expectThatBytesArrive(7);
  }
  void expectThatBytesArrive(int seed) {
    ASSERT_TRUE(client_->fill(0, kSize, seed).ok);
    Reply put = client_->transfer("put", *server_, 0, 0, kSize, kType);
    EXPECT_TRUE(put.ok) << put;
    EXPECT_TRUE(server_->check(0, kSize, seed).ok);
    ASSERT_TRUE(client_->fill(0, kSize, seed + 1).ok);
    Reply get = client_->transfer("get", *server_, 0, 0, kSize, kType);
    EXPECT_TRUE(get.ok) << get;
    EXPECT_TRUE(client_->check(0, kSize, seed).ok);
  }

  std::unique_ptr<Peer> server_, client_;
};

TEST_F(RdmaLink, thatGoesDownEndsAPutAndUpAgainItWorksAgain) {
  startLoop("put");
  cable("cut");
  expectTheEnd();
  cable("mend");
  expectThatItWorksAgain();
}

TEST_F(RdmaLink, thatSwallowsEverythingEndsAGetToo) {
  startLoop("get");
  cable("lose 100");
  expectTheEnd();
  cable("lose 0");
  expectThatItWorksAgain();
}

TEST_F(RdmaLink, thatLosesPacketsDeliversEverythingAllTheSame) {
  cable("lose 1");
  expectThatBytesArrive(3);
}

}  // namespace
}  // namespace hmc::test
