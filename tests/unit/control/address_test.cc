#include "control/socket.h"

#include <gtest/gtest.h>

namespace hmc::control {
namespace {

std::string complaint(const std::string& text) {
  auto address = parseAddress(text);
  return address.ok() ? "none" : address.status().message();
}

TEST(Address, readsHostAndPort) {
  auto address = parseAddress("tcp://node7.example:5001");
  ASSERT_TRUE(address.ok());
  EXPECT_FALSE(address->isUnix);
  EXPECT_EQ(address->host, "node7.example");
  EXPECT_EQ(address->port, 5001);
  EXPECT_EQ(address->toString(), "tcp://node7.example:5001");
}

TEST(Address, readsIpv6InBrackets) {
  auto address = parseAddress("tcp://[::1]:80");
  ASSERT_TRUE(address.ok());
  EXPECT_EQ(address->host, "::1");
  EXPECT_EQ(address->toString(), "tcp://[::1]:80");
}

TEST(Address, readsUnixPath) {
  auto address = parseAddress("unix:///tmp/x.sock");
  ASSERT_TRUE(address.ok());
  EXPECT_TRUE(address->isUnix);
  EXPECT_EQ(address->path, "/tmp/x.sock");
  EXPECT_EQ(address->toString(), "unix:///tmp/x.sock");
}

TEST(Address, complaintsNameTheBadPart) {
  EXPECT_NE(complaint("127.0.0.1:80").find("neither tcp:// nor unix://"), std::string::npos);
  EXPECT_NE(complaint("tcp://127.0.0.1").find("no port"), std::string::npos);
  EXPECT_NE(complaint("tcp://127.0.0.1:").find("not a port"), std::string::npos);
  EXPECT_NE(complaint("tcp://127.0.0.1:65536").find("\"65536\""), std::string::npos);
  EXPECT_NE(complaint("tcp://127.0.0.1:8x").find("\"8x\""), std::string::npos);
  EXPECT_NE(complaint("tcp://127.0.0.1:-1").find("\"-1\""), std::string::npos);
  EXPECT_NE(complaint("tcp://:80").find("no host"), std::string::npos);
  EXPECT_NE(complaint("tcp://::1:80").find("brackets"), std::string::npos);
  EXPECT_NE(complaint("tcp://[::1:80").find("without its ]"), std::string::npos);
  EXPECT_NE(complaint("tcp://[::1]").find("no port"), std::string::npos);
  EXPECT_NE(complaint("tcp://a b:80").find("character"), std::string::npos);
  EXPECT_NE(complaint("unix://relative").find("begin with /"), std::string::npos);
  EXPECT_NE(complaint("unix:///tmp/").find("name a file"), std::string::npos);
}

TEST(Address, unixPathOf107BytesIsTheLongest) {
  EXPECT_EQ(complaint("unix:///" + std::string(106, 'a')), "none");
  std::string long108 = complaint("unix:///" + std::string(107, 'a'));
  EXPECT_NE(long108.find("108 bytes"), std::string::npos);
  EXPECT_NE(long108.find("107"), std::string::npos);
}

}  // namespace
}  // namespace hmc::control
