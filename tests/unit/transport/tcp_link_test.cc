#include <filesystem>
#include <set>
#include <thread>

#include "unit/transport/tcp_fixture.h"

// Our side of a tcp link: how it comes up or does not.
namespace hmc::tcp {
namespace {

LinkOptions linkOptions(bool initiator, const std::string& host = "127.0.0.1",
                        const std::string& peerHost = "") {
  LinkOptions options = test::linkOptions(initiator);
  options.localHost = host;
  options.peerHost = peerHost.empty() ? host : peerHost;
  return options;
}

// Posts one operation and drives it to its end.
Status run(Transport& transport, Link& link, const Op& op, Completion& completion) {
  Deadline deadline = kPatience;
  while (link.post({&op, 1}) == 0 && !deadline.passed()) {
    transport.progress(std::chrono::milliseconds(50));
  }
  while (!completion.done() && !deadline.passed()) {
    transport.progress(std::chrono::milliseconds(50));
  }
  return completion.done() ? completion.status() : Status(Code::failed, "it hangs");
}

TEST(TcpLink, aRefusedConnectionFailsWithTheReason) {
  auto transport = *create();
  std::string memory(100, '.');
  auto registration =
      *transport->registerRegion({memory.data(), memory.size(), Device{}}, Access::readWrite);
  uint16_t port = 0;
  {
    Listening closedSoon = *listenOn("127.0.0.1");
    port = closedSoon.port;
  }
  auto link = *transport->openLink(linkOptions(true));
  (void)link->connect(Address{port, std::string(kTokenSize, 't'), ""}.encode());
  auto remote = *link->importKey(Key{1, 100, true}.encode(), kPatience, nullptr);
  Completion completion(1);
  Op op{OpKind::put, memory.data(), registration.get(), remote.get(), 0, 10, &completion};
  Status status = run(*transport, *link, op, completion);
  EXPECT_EQ(status.code(), Code::disconnected);
  EXPECT_NE(status.message().find("refused"), std::string::npos) << status.toString();
  EXPECT_NE(status.message().find(std::to_string(port)), std::string::npos) << status.toString();
}

TEST(TcpLink, aPeerThatNeverDialsFailsOperationsInTheEnd) {
  auto transport = *create({.connectTimeout = std::chrono::milliseconds(100)});
  std::string memory(100, '.');
  auto registration =
      *transport->registerRegion({memory.data(), memory.size(), Device{}}, Access::readWrite);
  auto link = *transport->openLink(linkOptions(false, "127.0.0.1", "10.1.2.3"));
  ASSERT_TRUE(link->connect(Address{0, "", ""}.encode()).ok());
  auto remote = *link->importKey(Key{1, 100, true}.encode(), kPatience, nullptr);
  Completion completion(1);
  Op op{OpKind::put, memory.data(), registration.get(), remote.get(), 0, 10, &completion};
  EXPECT_EQ(link->post({&op, 1}), 0u) << "nothing can start before the peer is there";
  Status status = run(*transport, *link, op, completion);
  EXPECT_EQ(status.code(), Code::disconnected);
  EXPECT_NE(status.message().find("10.1.2.3"), std::string::npos) << status.toString();
}

TEST(TcpLink, oneSideDialsNotBoth) {
  auto transport = *create();
  auto dialler = *transport->openLink(linkOptions(true));
  auto acceptor = *transport->openLink(linkOptions(false));
  auto another = *transport->openLink(linkOptions(true));
  EXPECT_EQ(dialler->connect(another->address()).code(), Code::invalidArgument);
  EXPECT_EQ(acceptor->connect(acceptor->address()).code(), Code::invalidArgument);
  EXPECT_TRUE(dialler->connect(acceptor->address()).ok());
  EXPECT_EQ(dialler->connect(acceptor->address()).code(), Code::invalidArgument);
}

TEST(TcpLink, aClosedLinkDoesNotConnectAnyMore) {
  auto transport = *create();
  auto dialler = *transport->openLink(linkOptions(true));
  auto acceptor = *transport->openLink(linkOptions(false));
  dialler->close(Status(Code::cancelled, "closed by the test"));
  EXPECT_EQ(dialler->connect(acceptor->address()).code(), Code::disconnected);
}

TEST(TcpLink, saysOnceThatItHasEnded) {
  auto transport = *create();
  int told = 0;
  auto options = linkOptions(true);
  options.onEnd = [&] { ++told; };
  auto link = *transport->openLink(options);
  EXPECT_EQ(told, 0);
  link->close(Status(Code::cancelled, "closed by the test"));
  link.reset();
  EXPECT_EQ(told, 1);
}

TEST(TcpLink, connectAndCloseMayMeet) {
  auto transport = *create();
  for (int round = 0; round < 50; ++round) {
    auto dialler = *transport->openLink(linkOptions(true));
    auto acceptor = *transport->openLink(linkOptions(false));
    std::jthread closer([&] { dialler->close(Status(Code::cancelled, "closed by the test")); });
    (void)dialler->connect(acceptor->address());
  }
}

TEST(TcpLink, aHostThatIsNoAddressOrNotOursIsAStatus) {
  auto transport = *create();
  EXPECT_EQ(transport->openLink(linkOptions(false, "no such host")).status().code(),
            Code::invalidArgument);
  EXPECT_FALSE(transport->openLink(linkOptions(false, "203.0.113.7")).ok());
}

TEST(TcpLink, optionsAndMemoryThatCannotBeAreAStatus) {
  EXPECT_EQ(create({.streams = 0}).status().code(), Code::invalidArgument);
  EXPECT_EQ(create({.streams = 65}).status().code(), Code::invalidArgument);
  EXPECT_EQ(create({.piece = 0}).status().code(), Code::invalidArgument);
  EXPECT_EQ(create({.piece = kLargestRequest + 1}).status().code(), Code::invalidArgument);
  auto transport = *create();
  char byte = 0;
  EXPECT_EQ(transport->registerRegion({&byte, 0, Device{}}, Access::read).status().code(),
            Code::invalidArgument);
  const Region device{&byte, 1, Device{DeviceKind::cuda, 0}};
  EXPECT_EQ(transport->registerRegion(device, Access::read).status().code(), Code::unsupported);
}

// Two transports and a link between them.
struct Two {
  Two(int streamsOfA, int streamsOfB, const std::string& host = "127.0.0.1",
      std::chrono::milliseconds timeout = std::chrono::seconds(10))
      : a(*create({streamsOfA, timeout})), b(*create({streamsOfB, timeout})) {
    acceptor = *b->openLink(linkOptions(false, host));
    dialler = *a->openLink(linkOptions(true, host));
    EXPECT_TRUE(dialler->connect(acceptor->address()).ok());
    EXPECT_TRUE(acceptor->connect(dialler->address()).ok());
  }
  std::unique_ptr<Transport> a;
  std::unique_ptr<Transport> b;
  std::unique_ptr<Link> acceptor;
  std::unique_ptr<Link> dialler;
};

void expectPutArrives(Transport& here, Link& link, Transport& there) {
  std::string from(100, 'f');
  std::string to(100, '.');
  auto ours = *here.registerRegion({from.data(), from.size(), Device{}}, Access::readWrite);
  auto theirs = *there.registerRegion({to.data(), to.size(), Device{}}, Access::readWrite);
  auto remote = *link.importKey(theirs->key(), kPatience, nullptr);
  Completion completion(1);
  Op op{OpKind::put, from.data(), ours.get(), remote.get(), 0, 100, &completion};
  Status status = run(here, link, op, completion);
  EXPECT_TRUE(status.ok()) << status.toString();
  EXPECT_EQ(to, from);
}

bool hasIpv6() {
  return listenOn("::1").ok();
}

TEST(TcpLink, worksOverIpv6) {
  if (!hasIpv6()) GTEST_SKIP() << "no IPv6 here";
  Two two(2, 2, "::1");
  expectPutArrives(*two.a, *two.dialler, *two.b);
  expectPutArrives(*two.b, *two.acceptor, *two.a);
}

// Behind address translation a peer knows itself by another address.
TEST(TcpLink, dialsWhereTheControlChannelWent) {
  auto origin = *create();
  auto target = *create();
  auto dialled = *target->openLink(linkOptions(false, "0.0.0.0"));
  auto dialling = *origin->openLink(linkOptions(true, "127.0.0.1", "127.0.0.3"));
  ASSERT_TRUE(dialled->connect(dialling->address()).ok());
  ASSERT_TRUE(dialling->connect(dialled->address()).ok());
  expectPutArrives(*origin, *dialling, *target);
}

uint16_t portOf(Link& link) {
  return Address::decode(link.address())->port;
}

TEST(TcpLink, listensAtAFreePortOfTheRange) {
  const Listening taken = *listenOn("127.0.0.1");
  const uint16_t last = taken.port < 65000 ? taken.port + 200 : taken.port;
  const uint16_t first = taken.port < 65000 ? taken.port : taken.port - 200;
  auto one = *create({.ports = {first, last}});
  auto other = *create({.ports = {first, last}});
  std::set<uint16_t> ports{taken.port};
  for (Transport* transport : {one.get(), other.get()}) {
    auto link = *transport->openLink(linkOptions(false));
    EXPECT_GE(portOf(*link), first);
    EXPECT_LE(portOf(*link), last);
    EXPECT_TRUE(ports.insert(portOf(*link)).second) << portOf(*link) << " twice";
  }
}

TEST(TcpLink, aRangeThatIsTakenIsNamed) {
  const Listening taken = *listenOn("127.0.0.1");
  auto transport = *create({.ports = {taken.port, taken.port}});
  const Status status = transport->openLink(linkOptions(false)).status();
  EXPECT_EQ(status.code(), Code::exhausted);
  EXPECT_NE(status.message().find(std::to_string(taken.port)), std::string::npos)
      << status.toString();
}

TEST(TcpLink, theTwoSidesMayWantDifferentNumbersOfStreams) {
  for (auto [streamsOfA, streamsOfB] : {std::pair{1, 5}, {5, 1}, {1, 1}, {7, 7}}) {
    Two two(streamsOfA, streamsOfB, "127.0.0.1", std::chrono::milliseconds(500));
    expectPutArrives(*two.a, *two.dialler, *two.b);
    expectPutArrives(*two.b, *two.acceptor, *two.a);
    // Long after the connections had to be there the links are still in order.
    for (Deadline over = std::chrono::milliseconds(600); !over.passed();) {
      two.a->progress(std::chrono::milliseconds(50));
      two.b->progress(std::chrono::milliseconds(50));
    }
    expectPutArrives(*two.b, *two.acceptor, *two.a);
  }
}

TEST(TcpLink, aTransportThatWasIdleForLongAnswersAgain) {
  Two two(2, 2);
  expectPutArrives(*two.a, *two.dialler, *two.b);
  EXPECT_FALSE(two.a->progress(std::chrono::milliseconds(100)));
  expectPutArrives(*two.a, *two.dialler, *two.b);
}

// Puts and gets that fill every window.
void expectMuchArrives(Transport& here, Link& link, Transport& there) {
  constexpr size_t kSize = 128 * kPiece;
  std::vector<uint64_t> ours(kSize / 8);
  std::vector<uint64_t> theirs(kSize / 8);
  for (size_t i = 0; i < ours.size(); ++i) ours[i] = i * 0x9e3779b97f4a7c15ull;
  auto oursReg = *here.registerRegion({ours.data(), kSize, Device{}}, Access::readWrite);
  auto theirsReg = *there.registerRegion({theirs.data(), kSize, Device{}}, Access::readWrite);
  auto remote = *link.importKey(theirsReg->key(), kPatience, nullptr);
  const std::vector<uint64_t> expected = ours;
  for (OpKind kind : {OpKind::put, OpKind::get}) {
    Completion completion(kSize / kPiece);
    std::vector<Op> ops;
    for (size_t at = 0; at < kSize; at += kPiece) {
      ops.push_back({kind, reinterpret_cast<char*>(ours.data()) + at, oursReg.get(), remote.get(),
                     at, kPiece, &completion});
    }
    std::span<const Op> rest(ops);
    for (Deadline deadline = kPatience; !completion.done() && !deadline.passed();) {
      rest = rest.subspan(link.post(rest));
      here.progress(std::chrono::milliseconds(50));
    }
    ASSERT_TRUE(completion.done());
    EXPECT_TRUE(completion.status().ok()) << completion.status().toString();
    EXPECT_TRUE(theirs == expected);
    EXPECT_TRUE(ours == expected);
    std::fill(ours.begin(), ours.end(), 0);
  }
}

size_t openSockets() {
  size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    const auto target = std::filesystem::read_symlink(entry.path(), gone);
    count += target.string().rfind("socket:", 0) == 0 ? 1 : 0;
  }
  return count;
}

TEST(TcpLink, movesManyMegabytesInBothDirections) {
  Two two(2, 2);
  expectMuchArrives(*two.a, *two.dialler, *two.b);
  expectMuchArrives(*two.b, *two.acceptor, *two.a);
}

// A peer that has connected, and moved a little, costs one stream in each direction.
TEST(TcpLink, dialsMoreStreamsWhenThereIsMuchToMove) {
  const size_t before = openSockets();
  Two two(3, 3);
  for (int i = 0; i < 10; ++i) {
    expectPutArrives(*two.a, *two.dialler, *two.b);
    expectPutArrives(*two.b, *two.acceptor, *two.a);
  }
  constexpr size_t kListener = 1;
  EXPECT_EQ(openSockets(), before + kListener + 2 * 2);
  expectMuchArrives(*two.a, *two.dialler, *two.b);
  EXPECT_GE(openSockets(), before + kListener + 2 * 4);
  expectMuchArrives(*two.b, *two.acceptor, *two.a);
  EXPECT_EQ(openSockets(), before + kListener + 2 * 6);
}

}  // namespace
}  // namespace hmc::tcp
