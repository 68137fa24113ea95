#include "bench/raw_socket.h"

#include <gtest/gtest.h>

#include <thread>

namespace hmc::bench {
namespace {

class RawSocketTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto server = RawSocketServer::listen("127.0.0.1");
    ASSERT_TRUE(server.ok()) << server.status().toString();
    server_ = std::make_unique<RawSocketServer>(*std::move(server));
    thread_ = std::jthread([this] {
      while (server_->serve()) {
      }
    });
  }
  void TearDown() override { server_->stop(); }

  std::unique_ptr<RawSocketServer> server_;
  std::jthread thread_;
};

TEST_F(RawSocketTest, exchangesSizesThatChange) {
  auto socket = RawSocket::connect("127.0.0.1", server_->port());
  ASSERT_TRUE(socket.ok()) << socket.status().toString();
  struct Sizes {
    size_t request;
    size_t reply;
  };
  for (auto [request, reply] :
       {Sizes{8, 8}, Sizes{1 << 20, 1}, Sizes{1, 1 << 20}, Sizes{100000, 8}, Sizes{8, 8}}) {
    ASSERT_TRUE(socket->prepare(request, reply).ok());
    for (int i = 0; i < 3; ++i) {
      Status status = socket->exchange();
      ASSERT_TRUE(status.ok()) << status.toString();
    }
  }
}

TEST_F(RawSocketTest, servesOneClientAfterTheOther) {
  for (int i = 0; i < 3; ++i) {
    auto socket = RawSocket::connect("127.0.0.1", server_->port());
    ASSERT_TRUE(socket.ok()) << socket.status().toString();
    ASSERT_TRUE(socket->prepare(8, 8).ok());
    EXPECT_TRUE(socket->exchange().ok());
  }
}

TEST_F(RawSocketTest, refusesAnEmptyExchange) {
  auto socket = RawSocket::connect("127.0.0.1", server_->port());
  ASSERT_TRUE(socket.ok()) << socket.status().toString();
  EXPECT_EQ(socket->prepare(0, 8).code(), Code::invalidArgument);
  EXPECT_EQ(socket->prepare(8, 0).code(), Code::invalidArgument);
}

}  // namespace
}  // namespace hmc::bench
