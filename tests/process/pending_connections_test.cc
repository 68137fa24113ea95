// Sockets that knock on a server's listeners and do not speak its language.

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <memory>
#include <random>
#include <sstream>

#include "peer.h"

namespace hmc::test {
namespace {

class RawClient {
 public:
  explicit RawClient(uint16_t port) : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  }
  ~RawClient() { close(fd_); }
  RawClient(const RawClient&) = delete;
  RawClient& operator=(const RawClient&) = delete;

  void say(const std::string& bytes) {
    // The server may have hung up already.
    (void)!::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  }
  // True when the server ends the conversation in time.
  bool isSentAway() {
    return eventually([&] {
      char bytes[4096];
      pollfd readable{fd_, POLLIN, 0};
      return poll(&readable, 1, 100) > 0 && recv(fd_, bytes, sizeof(bytes), MSG_DONTWAIT) <= 0;
    });
  }

 private:
  int fd_;
};

// A frame's header, as docs/wire-format.md has it: length, type, detail, flags.
std::string header(uint32_t length, uint8_t type) {
  std::string bytes;
  for (int shift = 0; shift < 32; shift += 8) bytes += static_cast<char>(length >> shift);
  bytes += static_cast<char>(type);
  return bytes + std::string(3, '\0');
}

std::string noise(size_t size) {
  static std::minstd_rand random{7};
  std::string bytes(size, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random());
  return bytes;
}

struct Usage {
  int fds = 0, threads = 0, mappings = 0, kilobytes = 0;
};
Usage usageOf(Peer& peer) {
  Usage counts;
  std::istringstream(peer.ask("count").text) >> counts.fds >> counts.threads >> counts.mappings >>
      counts.kilobytes;
  return counts;
}

class PendingConnections : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(server.serve(1 << 20).ok);
    ASSERT_TRUE(client.allocate(1 << 20).ok);
    ASSERT_TRUE(client.connectTo(server, "TCP").ok);
    expectServed(0);
  }

  void expectServed(int seed) {
    ASSERT_TRUE(client.fill(0, 1 << 20, seed).ok);
    Reply put = client.transfer("put", server, 0, 0, 1 << 20, "TCP");
    EXPECT_TRUE(put.ok) << put;
    EXPECT_TRUE(server.check(0, 1 << 20, seed).ok);
    EXPECT_TRUE(client.ask("tag 0 " + std::to_string(seed)).ok);
    EXPECT_EQ(server.ask("recvtag 1").text, std::to_string(seed));
  }

  void expectNewcomersServed() {
    Peer late;
    ASSERT_TRUE(late.allocate(4096).ok);
    Reply connected = late.connectTo(server, "IPC", 2);
    EXPECT_TRUE(connected.ok) << connected;
    EXPECT_TRUE(late.transfer("put", server, 0, 0, 4096, "IPC").ok);
  }

  std::vector<uint16_t> listeners() const { return {server.dataPort(), server.controlPort()}; }

  Peer server, client;
};

TEST_F(PendingConnections, thatSayNothingKeepNobodyWaiting) {
  std::vector<std::unique_ptr<RawClient>> silent;
  for (int i = 0; i < 20; ++i) {
    for (uint16_t port : listeners()) silent.push_back(std::make_unique<RawClient>(port));
  }
  expectServed(1);
  expectNewcomersServed();
}

TEST_F(PendingConnections, thatSayGarbageAreSentAway) {
  std::vector<std::string> garbage{"GET / HTTP/1.1\r\nHost: here\r\n\r\n",
                                   std::string(8, '\xff'),
                                   std::string(100000, '\0'),
                                   header(16, 1) + noise(16),
                                   header(0, 200),
                                   header(24, 16) + noise(24)};
  for (int i = 0; i < 20; ++i) garbage.push_back(noise(64 + 97 * i));
  for (uint16_t port : listeners()) {
    // Noise can read as the beginning of a frame; then the server waits for the rest a while.
    std::vector<std::unique_ptr<RawClient>> clients;
    for (const auto& bytes : garbage) {
      clients.push_back(std::make_unique<RawClient>(port));
      clients.back()->say(bytes);
    }
    RawClient browser(port);
    browser.say("GET / HTTP/1.1\r\nHost: here\r\n\r\n");
    EXPECT_TRUE(browser.isSentAway());
  }
  expectServed(2);
  expectNewcomersServed();
}

TEST_F(PendingConnections, thatAnnounceFourGigabytesGetNoMemoryForThem) {
  int before = usageOf(server).kilobytes;
  std::vector<std::unique_ptr<RawClient>> clients;
  for (int i = 0; i < 20; ++i) {
    for (uint16_t port : listeners()) {
      clients.push_back(std::make_unique<RawClient>(port));
      clients.back()->say(header(~uint32_t{0}, static_cast<uint8_t>(1 + i)));
      clients.back()->say(std::string(1000, 'x'));
    }
  }
  for (auto& raw : clients) EXPECT_TRUE(raw->isSentAway());
  expectServed(3);
  EXPECT_LT(usageOf(server).kilobytes - before, 64 * 1024);
  expectNewcomersServed();
}

TEST_F(PendingConnections, leaveNothingBehind) {
  auto visit = [&] {
    for (int i = 0; i < 50; ++i) {
      RawClient raw(listeners()[static_cast<size_t>(i) % 2]);
      if (i % 3 != 0) raw.say(noise(200));
    }
  };
  visit();
  expectServed(4);
  Usage before = usageOf(server);
  for (int round = 0; round < 4; ++round) visit();
  expectServed(5);
  EXPECT_TRUE(eventually([&] { return usageOf(server).fds <= before.fds; }))
      << usageOf(server).fds << " descriptors, " << before.fds << " before";
  EXPECT_EQ(usageOf(server).threads, before.threads);
}

}  // namespace
}  // namespace hmc::test
