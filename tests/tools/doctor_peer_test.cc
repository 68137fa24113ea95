#include "doctor/checks.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <thread>

#include "doctor/checks.h"
#include "hmc/version.h"

namespace hmc::tool {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

// For what must be there; and for what never comes, which a test has to wait for.
constexpr auto kPatience = 30s;
constexpr auto kImpatience = 300ms;

NodeOptions doctor(const std::string& secret = "") {
  NodeOptions options;
  options.name = "doctor";
  options.secret = secret;
  return options;
}

const Finding* find(const std::vector<Finding>& findings, const std::string& what) {
  for (const auto& finding : findings) {
    if (finding.what == what) return &finding;
  }
  return nullptr;
}

std::string shown(const std::vector<Finding>& findings) {
  std::string text;
  for (const auto& finding : findings) text += toText(finding);
  return text;
}

// The last finding is the one at which the checks gave up.
void expectFailure(const std::vector<Finding>& findings, const std::string& what,
                   const std::string& detail, const std::string& fix) {
  ASSERT_FALSE(findings.empty());
  const Finding& last = findings.back();
  EXPECT_EQ(last.level, Level::fail) << shown(findings);
  EXPECT_EQ(last.what, what) << shown(findings);
  EXPECT_THAT(last.detail, HasSubstr(detail));
  EXPECT_THAT(last.fix, HasSubstr(fix));
  EXPECT_FALSE(healthy(findings));
}

// A TCP socket on a port that the kernel picked; listens when told to.
class Socket {
 public:
  explicit Socket(bool listening) : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    bind(fd_, reinterpret_cast<sockaddr*>(&address), size);
    getsockname(fd_, reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
    if (listening) listen(fd_, 8);
  }
  ~Socket() {
    shutdown(fd_, SHUT_RDWR);
    close(fd_);
  }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;

  int fd() const { return fd_; }
  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }

 private:
  const int fd_;
  uint16_t port_ = 0;
};

TEST(DoctorPeer, aLiveNodeIsHealthyInEveryRespect) {
  Node node = *Node::create();
  std::string listener = *node.listen("tcp://127.0.0.1:0");
  auto findings = checkPeer(listener, doctor(), kPatience);
  EXPECT_TRUE(healthy(findings)) << shown(findings);
  for (const char* what :
       {"name", "reachability", "hello", "versions", "clocks", "round trip", "transport"}) {
    const Finding* finding = find(findings, what);
    ASSERT_TRUE(finding) << what;
    EXPECT_EQ(finding->level, Level::ok) << toText(*finding);
  }
  EXPECT_THAT(find(findings, "versions")->detail, HasSubstr(kVersion));
  EXPECT_THAT(find(findings, "transport")->detail, HasSubstr("ipc: both sides"));
}

TEST(DoctorPeer, aUnixListenerIsAPeerToo) {
  Node node = *Node::create();
  std::string path = testing::TempDir() + "doctor" + std::to_string(getpid()) + ".sock";
  ASSERT_TRUE(node.listen("unix://" + path).ok());
  auto findings = checkPeer("unix://" + path, doctor(), kPatience);
  EXPECT_TRUE(healthy(findings)) << shown(findings);
  EXPECT_TRUE(find(findings, "round trip"));
}

TEST(DoctorPeer, aClosedPortIsRefused) {
  Socket bound(false);
  expectFailure(checkPeer(bound.address(), doctor(), kPatience), "reachability", "refused",
                "ss -ltn");
}

TEST(DoctorPeer, aUnixPathWithoutAListenerIsRefused) {
  expectFailure(checkPeer("unix:///nowhere/at/all", doctor(), kPatience), "reachability", "refused",
                "ls -l /nowhere/at/all");
}

// Greets everybody with the same words and listens until they hang up.
class Talker {
 public:
  explicit Talker(std::string words) : words_(std::move(words)), thread_([this] { talk(); }) {}
  ~Talker() {
    shutdown(socket_.fd(), SHUT_RDWR);
    thread_.join();
  }
  std::string address() const { return socket_.address(); }

 private:
  void talk() {
    for (int fd = accept(socket_.fd(), nullptr, nullptr); fd >= 0;
         fd = accept(socket_.fd(), nullptr, nullptr)) {
      (void)!send(fd, words_.data(), words_.size(), MSG_NOSIGNAL);
      char byte = 0;
      while (recv(fd, &byte, 1, 0) > 0) {
      }
      close(fd);
    }
  }

  const std::string words_;
  Socket socket_{true};
  std::thread thread_;
};

TEST(DoctorPeer, aProgramThatTalksSomethingElseIsNoHmc) {
  Talker other("SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n");
  expectFailure(checkPeer(other.address(), doctor(), kPatience), "hello", "does not speak HMC",
                "ss -ltnp");
}

std::string word(uint32_t value) {
  return {static_cast<char>(value), static_cast<char>(value >> 8), static_cast<char>(value >> 16),
          static_cast<char>(value >> 24)};
}

std::string checksum(const std::string& bytes) {
  uint32_t crc = ~uint32_t{0};
  for (const char byte : bytes) {
    crc ^= static_cast<unsigned char>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ ((crc & 1) != 0 ? 0x82f63b78 : 0);
  }
  return word(~crc);
}

TEST(DoctorPeer, aPeerOfAnotherProtocolVersionIsNamed) {
  // REFUSED: a frame of type 6 with code 5 (unsupported) and a sentence; see docs/wire-format.md.
  const std::string sentence = "versions 8 to 9 only";
  const std::string payload = '\5' + word(static_cast<uint32_t>(sentence.size())) + sentence;
  const std::string header =
      word(static_cast<uint32_t>(payload.size())) + word(6) + checksum(payload);
  Talker future(header + checksum(header) + payload);
  expectFailure(checkPeer(future.address(), doctor(), kPatience), "hello", sentence,
                "hmc --version");
}

TEST(DoctorPeer, aNodeThatCannotBeMadeGetsTheFixThatFits) {
  EXPECT_EQ(judgeNode(Status()).level, Level::ok);
  EXPECT_THAT(judgeNode(Status(Code::exhausted, "none left")).fix, HasSubstr("ulimit -n"));
  EXPECT_THAT(judgeNode(Status(Code::invalidArgument, "pigeon")).fix, HasSubstr("HMC_TRANSPORTS"));
  EXPECT_FALSE(judgeNode(Status(Code::failed, "bad luck")).fix.empty());
  NodeOptions options = doctor();
  options.transports = {"pigeon"};
  Node node = *Node::create();
  expectFailure(checkPeer(*node.listen("tcp://127.0.0.1:0"), options, kPatience), "node", "pigeon",
                "unset HMC_TRANSPORTS");
}

TEST(DoctorPeer, aProgramThatSaysNothingIsNotWaitedForLongerThanAsked) {
  Socket listener(true);  // the kernel accepts, nobody answers
  expectFailure(checkPeer(listener.address(), doctor(), kImpatience), "hello", "no hello came back",
                "ss -ltnp");
}

TEST(DoctorPeer, aSecretOnOneSideOrAnotherOneIsNamed) {
  NodeOptions guarded;
  guarded.secret = "sesame";
  Node node = *Node::create(guarded);
  std::string listener = *node.listen("tcp://127.0.0.1:0");
  for (const char* wrong : {"", "simsim"}) {
    expectFailure(checkPeer(listener, doctor(wrong), kPatience), "hello", "secrets differ",
                  "export HMC_SECRET");
  }
  auto findings = checkPeer(listener, doctor("sesame"), kPatience);
  EXPECT_TRUE(healthy(findings)) << shown(findings);
}

TEST(DoctorPeer, aPairWithoutACommonTransportFails) {
  NodeOptions only;
  only.transports = {"tcp"};
  Node node = *Node::create(only);
  NodeOptions options = doctor();
  options.transports = {"ipc"};
  auto findings = checkPeer(*node.listen("tcp://127.0.0.1:0"), options, kPatience);
  expectFailure(findings, "transport", "no transport reaches", "HMC_TRANSPORTS");
}

TEST(DoctorPeer, aNameThatNobodyKnowsIsFoundOut) {
  expectFailure(checkPeer("no-such-host.invalid:5001", doctor(), kPatience), "name",
                "cannot be found", "getent hosts no-such-host.invalid");
}

TEST(DoctorPeer, addressesAreTakenApart) {
  EXPECT_EQ(parsePeerAddress("host:5001")->address, "tcp://host:5001");
  EXPECT_EQ(parsePeerAddress("tcp://[::1]:5001")->host, "::1");
  EXPECT_EQ(parsePeerAddress("tcp://[::1]:5001")->port, "5001");
  EXPECT_EQ(parsePeerAddress("unix:///run/me.sock")->path, "/run/me.sock");
  EXPECT_EQ(parsePeerAddress("/run/me.sock")->path, "/run/me.sock");
  for (const char* wrong : {"", "host", "host:", ":5001", "host:http", "host:0", "host:65536",
                            "udp://host:1", "tcp://host"}) {
    EXPECT_FALSE(parsePeerAddress(wrong).ok()) << wrong;
    expectFailure(checkPeer(wrong, doctor(), kPatience), "address", "host:port", "hmc doctor");
  }
}

TEST(DoctorPeer, refusedLateAndUnroutedAreToldApart) {
  PeerAddress target = *parsePeerAddress("worker:5001");
  EXPECT_EQ(judgeReach(target, 0, 1s).level, Level::ok);
  EXPECT_THAT(judgeReach(target, ECONNREFUSED, 1s).detail, HasSubstr("refused"));
  EXPECT_THAT(judgeReach(target, ETIMEDOUT, 1s).detail, HasSubstr("no answer within 1000 ms"));
  EXPECT_THAT(judgeReach(target, ETIMEDOUT, 1s).fix, HasSubstr("ufw allow 5001/tcp"));
  EXPECT_THAT(judgeReach(target, EHOSTUNREACH, 1s).detail, HasSubstr("no route"));
  EXPECT_THAT(judgeReach(target, ENETUNREACH, 1s).fix, HasSubstr("ip route get worker"));
  EXPECT_THAT(judgeReach(target, EPERM, 1s).detail, HasSubstr("forbidden"));
  for (int problem : {ECONNREFUSED, ETIMEDOUT, EHOSTUNREACH, ENETUNREACH, EACCES, EIO}) {
    EXPECT_EQ(judgeReach(target, problem, 1s).level, Level::fail) << problem;
    EXPECT_FALSE(judgeReach(target, problem, 1s).fix.empty()) << problem;
  }
}

TEST(DoctorPeer, versionsAndClocksThatDifferAreWarnings) {
  EXPECT_EQ(judgeVersion("1.0.0", PeerFacts{"1.0.0", 0ns, 1us}).level, Level::ok);
  EXPECT_EQ(judgeVersion("1.0.0", PeerFacts{"1.1.0", 0ns, 1us}).level, Level::warn);
  Status old(Code::unsupported, "too old");
  EXPECT_EQ(judgeVersion("1.0.0", old).level, Level::warn);
  PeerAddress target = *parsePeerAddress("worker:5001");
  EXPECT_THAT(judgeHello(target, old, false).detail, HasSubstr("versions do not fit"));
  EXPECT_EQ(judgeClock(20ms, 1ms).level, Level::ok);
  EXPECT_EQ(judgeClock(-20ms, 1ms).level, Level::ok);
  EXPECT_EQ(judgeClock(2s, 1ms).level, Level::warn);
  EXPECT_EQ(judgeClock(-2s, 1ms).level, Level::warn);
  EXPECT_EQ(judgeClock(2s, 4s).level, Level::ok) << "no more than the estimate's error";
  EXPECT_THAT(judgeClock(-2s, 1ms).detail, HasSubstr("2.00 s behind ours"));
  EXPECT_THAT(judgeClock(-2s, 1ms).fix, HasSubstr("timedatectl"));
}

TEST(DoctorPeer, saysWhetherThePeerLetsEverybodyIn) {
  Node server = *Node::create(doctor());
  const std::string listener = *server.listen("tcp://127.0.0.1:0");
  auto findings = checkPeer(listener, doctor(), kPatience);
  ASSERT_TRUE(find(findings, "security")) << shown(findings);
  EXPECT_EQ(find(findings, "security")->level, Level::ok) << shown(findings);
  EXPECT_EQ(judgeTrust(false).level, Level::warn);
  EXPECT_THAT(judgeTrust(false).fix, HasSubstr("HMC_SECRET"));
}

TEST(DoctorHost, saysWhoIsLetInOverLoopback) {
  EXPECT_EQ(checkSecurity({"processes of this user", "nobody", false, ""}).level, Level::ok);
  EXPECT_EQ(checkSecurity({"every user", "nobody", true, ""}).level, Level::warn);
  EXPECT_EQ(checkSecurity({"", "", false, "the cookie is not private"}).level, Level::fail);
}

}  // namespace
}  // namespace hmc::tool
