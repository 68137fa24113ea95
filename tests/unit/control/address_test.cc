#include "control/socket.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <netdb.h>
#include <poll.h>

#include <chrono>
#include <string>

#include "test_peer.h"

namespace hmc::control {
namespace {

constexpr const char* kSlowHost = "slow.invalid";
constexpr int kResolverSeconds = 5;  // how long it takes to say nothing about that host

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

TEST(Address, aHostAndAPortAloneAreTcp) {
  for (const char* text : {"10.0.0.1:80", "localhost:80", "[::1]:80"}) {
    auto address = parseAddress(text);
    ASSERT_TRUE(address.ok()) << address.status().toString();
    EXPECT_EQ(address->toString(), std::string("tcp://") + text);
  }
}

TEST(Address, readsUnixPath) {
  auto address = parseAddress("unix:///tmp/x.sock");
  ASSERT_TRUE(address.ok());
  EXPECT_TRUE(address->isUnix);
  EXPECT_EQ(address->path, "/tmp/x.sock");
  EXPECT_EQ(address->toString(), "unix:///tmp/x.sock");
}

TEST(Address, complaintsNameTheBadPart) {
  EXPECT_NE(complaint("host").find("none of host:port,"), std::string::npos);
  EXPECT_NE(complaint("udp://127.0.0.1:80").find("none of host:port,"), std::string::npos);
  EXPECT_NE(complaint("127.0.0.1:x").find("not a port"), std::string::npos);
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

// The resolver asks servers that may not answer, and cannot be stopped.
TEST(Address, aNameThatDoesNotResolveTakesNoLongerThanItMay) {
  const auto began = std::chrono::steady_clock::now();
  const auto fd =
      dial(*parseAddress(std::string("tcp://") + kSlowHost + ":1"), std::chrono::milliseconds(50));
  EXPECT_EQ(fd.status().code(), Code::deadlineExceeded) << fd.status().toString();
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(kResolverSeconds - 1));
}

// Without a secret the listener's meanings are looked at, with one they are not.
TEST(Address, aListenerOfANameThatDoesNotResolveTakesNoLongerThanItMay) {
  for (const char* secret : {"", "hush"}) {
    ControlOptions options;
    options.secret = secret;
    options.resolver = std::chrono::milliseconds(50);
    test::TestPeer peer(options);
    const auto began = std::chrono::steady_clock::now();
    const auto listener = peer.control->listen(std::string("tcp://") + kSlowHost + ":0");
    EXPECT_EQ(listener.status().code(), Code::deadlineExceeded) << listener.status().toString();
    for (const char* part : {kSlowHost, "name server does not answer", "numeric address"}) {
      EXPECT_NE(listener.status().message().find(part), std::string::npos)
          << listener.status().message();
    }
    EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(kResolverSeconds - 1));
  }
}

}  // namespace
}  // namespace hmc::control

// In the place of the C library's, for the whole program.
extern "C" int getaddrinfo(const char* host, const char* service, const addrinfo* hints,
                           addrinfo** list) {
  const bool slow = host && std::string(host) == hmc::control::kSlowHost;
  if (slow && (hints->ai_flags & AI_NUMERICHOST) == 0) {
    poll(nullptr, 0, hmc::control::kResolverSeconds * 1000);
    return EAI_AGAIN;
  }
  using Resolver = int (*)(const char*, const char*, const addrinfo*, addrinfo**);
  static const auto real = reinterpret_cast<Resolver>(dlsym(RTLD_NEXT, "getaddrinfo"));
  return real(host, service, hints, list);
}
