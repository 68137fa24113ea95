#include <thread>

#include "base/fd_exchange.h"
#include "unit/transport/forged_reset.h"
#include "unit/transport/tcp_fixture.h"

// Our side of a tcp link, with a bare socket for a target: what it makes of a bad one, and of
// connections that do not come up.
namespace hmc::tcp {
namespace {

// How long to wait for a target that does not answer.
constexpr std::chrono::milliseconds kLease{600};
constexpr std::chrono::milliseconds kNearlyTheLease{500};
constexpr std::chrono::milliseconds kConnectTimeout{500};

// A link of our own and, in place of a peer, a listener that accepts bare sockets.
class TcpOrigin : public testing::Test {
 protected:
  void SetUp() override { start(); }
  // Anew, as often as a test likes.
  void start(int streams = 1, const std::string& exchange = "") {
    others_.clear();
    remote_.reset();
    link_.reset();
    registration_.reset();
    listening_ = *listenOn("127.0.0.1");
    const int small = 4096;
    setsockopt(listening_.fd.get(), SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
    transport_ = *create({.streams = streams, .connectTimeout = kConnectTimeout});
    registration_ =
        *transport_->registerRegion({memory_.data(), memory_.size(), Device{}}, Access::readWrite);
    link_ = *transport_->openLink(test::linkOptions(true, kLease));
    Address peer{listening_.port, std::string(kTokenSize, 't'), exchange};
    ASSERT_TRUE(link_->connect(peer.encode()).ok());
    remote_ = *link_->importKey(Key{1, memory_.size(), true}.encode(), kPatience, nullptr);
  }
  RawPeer acceptOne() {
    pollfd waiting{listening_.fd.get(), POLLIN, 0};
    EXPECT_EQ(poll(&waiting, 1, Deadline(kPatience).leftMs()), 1);
    return RawPeer(acceptFrom(listening_.fd.get()));
  }
  // The stream over which the link asks.
  RawPeer forwardStream() {
    while (true) {
      RawPeer peer = acceptOne();
      const std::string bytes = peer.hear(Greeting::kSize);
      if (bytes.size() != Greeting::kSize) return peer;
      if (Greeting::unpack(bytes.data()).role == static_cast<uint32_t>(Role::forward)) return peer;
      others_.push_back(std::move(peer));
    }
  }
  // The same, when the link has no connection on its way any more.
  RawPeer settledForwardStream() {
    RawPeer peer = forwardStream();
    if (others_.empty()) others_.push_back(acceptOne());
    return peer;
  }
  // From now on connections to the listener hang, as they do where packets are dropped.
  void swallowConnections() {
    ASSERT_EQ(listen(listening_.fd.get(), 0), 0);
    others_.emplace_back(*dial("127.0.0.1", listening_.port));
    pollfd waiting{others_.back().fd(), POLLOUT, 0};
    ASSERT_EQ(poll(&waiting, 1, Deadline(kPatience).leftMs()), 1);
  }
  Op op(OpKind kind, size_t size, Completion& completion) {
    return {kind, memory_.data(), registration_.get(), remote_.get(), 0, size, &completion};
  }
  // The link asks for a get and hears these bytes.
  Status answerToGet(const std::string& bytes) {
    Completion completion(1);
    Op get = op(OpKind::get, 8, completion);
    EXPECT_EQ(link_->post({&get, 1}), 1u);
    RawPeer peer = forwardStream();
    EXPECT_EQ(peer.hear(Request::kSize).size(), Request::kSize);
    EXPECT_TRUE(peer.say(bytes));
    shutdown(peer.fd(), SHUT_WR);
    for (Deadline deadline = kPatience; !completion.done() && !deadline.passed();) {
      transport_->progress(std::chrono::milliseconds(50));
    }
    EXPECT_TRUE(completion.done());
    return completion.status();
  }
  static std::string reply(ReplyKind kind, uint64_t id, uint64_t size, uint32_t code = 0) {
    std::string bytes(Reply::kSize, '\0');
    Reply{static_cast<uint32_t>(kind), code, id, size}.pack(bytes.data());
    return bytes;
  }

  std::string memory_ = std::string(100000, '.');
  Listening listening_;
  std::vector<RawPeer> others_;
  std::unique_ptr<Transport> transport_;
  std::unique_ptr<Registration> registration_;
  std::unique_ptr<Link> link_;
  std::unique_ptr<RemoteMemory> remote_;
};

TEST_F(TcpOrigin, takesAnHonestAnswer) {
  Status status =
      answerToGet(reply(ReplyKind::data, 0, 8) + "12345678" + reply(ReplyKind::done, 0, 0));
  EXPECT_TRUE(status.ok()) << status.toString();
  EXPECT_EQ(memory_.substr(0, 9), "12345678.");
}

TEST_F(TcpOrigin, passesOnARefusal) {
  Status status = answerToGet(reply(ReplyKind::refused, 0, 4, uint32_t(Code::notFound)) + "gone");
  EXPECT_EQ(status.code(), Code::notFound);
  EXPECT_EQ(status.message(), "gone");
}

TEST_F(TcpOrigin, givesUpOnATargetThatBreaksTheProtocol) {
  for (const std::string& bytes :
       {std::string(100, '\xff'), reply(ReplyKind::done, 0, 0), reply(ReplyKind::data, 1, 8),
        reply(ReplyKind::data, 0, uint64_t{4} << 30), reply(ReplyKind::data, 0, 9),
        reply(ReplyKind::refused, 0, uint64_t{4} << 30), reply(ReplyKind::refused, 3, 0)}) {
    start();
    Status status = answerToGet(bytes + std::string(1000, 'e'));
    EXPECT_EQ(status.code(), Code::disconnected) << status.toString();
    EXPECT_EQ(memory_.find('e'), std::string::npos);
  }
}

TEST_F(TcpOrigin, aPutThatIsAnsweredBeforeItWasSentBreaksTheProtocol) {
  constexpr size_t kPuts = 14;  // more bytes than the sockets take, fewer than the window
  std::string large(kPiece, 'x');
  auto registration =
      *transport_->registerRegion({large.data(), large.size(), Device{}}, Access::readWrite);
  auto remote = *link_->importKey(Key{1, large.size(), true}.encode(), kPatience, nullptr);
  Completion completion(kPuts);
  std::vector<Op> puts(kPuts, Op{OpKind::put, large.data(), registration.get(), remote.get(), 0,
                                 large.size(), &completion});
  RawPeer peer = forwardStream();
  ASSERT_EQ(link_->post(puts), kPuts);
  for (uint64_t i = 0; i < kPuts; ++i) peer.say(reply(ReplyKind::done, i, 0));
  shutdown(peer.fd(), SHUT_WR);
  for (Deadline deadline = kPatience; !completion.done() && !deadline.passed();) {
    transport_->progress(std::chrono::milliseconds(50));
  }
  EXPECT_EQ(completion.status().code(), Code::disconnected) << completion.status().toString();
  EXPECT_NE(completion.status().message().find("protocol"), std::string::npos);
}

TEST_F(TcpOrigin, aTargetThatNeverAnswersIsFencedByTime) {
  Completion completion(1);
  Op put = op(OpKind::put, 1000, completion);
  ASSERT_EQ(link_->post({&put, 1}), 1u);
  RawPeer peer = forwardStream();
  ASSERT_EQ(peer.hear(Request::kSize + 1000).size(), Request::kSize + 1000);
  link_->close(Status(Code::cancelled, "enough"));
  EXPECT_FALSE(completion.done()) << "the target could still apply it";
  for (Deadline deadline = kPatience; !completion.done() && !deadline.passed();) {
    transport_->progress(kPatience);
  }
  EXPECT_EQ(completion.status().code(), Code::cancelled);
}

// A firewall resets the connection of a target that is stopped, with a put in its socket.
TEST_F(TcpOrigin, aResetThatTheTargetHasNotSentIsNoFence) {
  for (bool closedFirst : {false, true}) {
    start();
    Completion completion(1);
    Op put = op(OpKind::put, 1000, completion);
    ASSERT_EQ(link_->post({&put, 1}), 1u);
    RawPeer peer = forwardStream();
    ASSERT_EQ(peer.hear(Request::kSize + 500).size(), Request::kSize + 500);
    if (closedFirst) link_->close(Status(Code::cancelled, "enough"));
    const auto before = Deadline::Clock::now();
    if (!test::forgeReset(peer.fd())) GTEST_SKIP() << "this process may not forge a reset";
    for (Deadline deadline = kPatience; !completion.done() && !deadline.passed();) {
      transport_->progress(std::chrono::milliseconds(50));
    }
    EXPECT_GT(Deadline::Clock::now() - before, kNearlyTheLease)
        << "the target could still apply it";
    EXPECT_FALSE(completion.status().ok());
  }
}

TEST_F(TcpOrigin, onlyThisStreamsFarewellIsAFence) {
  for (uint32_t number : {0, 1}) {
    start();
    Completion completion(1);
    Op put = op(OpKind::put, 1000, completion);
    ASSERT_EQ(link_->post({&put, 1}), 1u);
    RawPeer peer = forwardStream();
    ASSERT_EQ(peer.hear(Request::kSize + 1000).size(), Request::kSize + 1000);
    const auto before = Deadline::Clock::now();
    link_->close(Status(Code::cancelled, "enough"));
    const Greeting greeting{static_cast<uint32_t>(Role::forward), number,
                            std::string(kTokenSize, 't')};
    const std::string credentials = test::linkOptions(true).credentials;
    // Something may be on its way, the middle of a get's bytes for example.
    ASSERT_TRUE(peer.say("abc" + farewell(greeting.pack(credentials), credentials)));
    for (Deadline deadline = kPatience; !completion.done() && !deadline.passed();) {
      transport_->progress(std::chrono::milliseconds(50));
    }
    const bool early = Deadline::Clock::now() - before < kNearlyTheLease;
    EXPECT_EQ(early, number == 0);
  }
}

// A connection may also end, or be cut, while the target lives.
TEST_F(TcpOrigin, aTargetOfThisHostWhoseProcessIsGoneNeedsNoFarewell) {
  for (bool lives : {false, true}) {
    auto exchange = *FdExchange::create();
    start(1, exchange->name());
    Completion completion(1);
    Op put = op(OpKind::put, 1000, completion);
    ASSERT_EQ(link_->post({&put, 1}), 1u);
    const auto before = Deadline::Clock::now();
    {
      RawPeer peer = forwardStream();
      ASSERT_EQ(peer.hear(Request::kSize + 500).size(), Request::kSize + 500);
      if (!lives) exchange.reset();
    }
    for (Deadline deadline = kPatience; !completion.done() && !deadline.passed();) {
      transport_->progress(std::chrono::milliseconds(50));
    }
    EXPECT_EQ(Deadline::Clock::now() - before < kNearlyTheLease, !lives);
  }
}

TEST_F(TcpOrigin, aGetNeedsNoFence) {
  Completion completion(1);
  Op get = op(OpKind::get, 1000, completion);
  ASSERT_EQ(link_->post({&get, 1}), 1u);
  link_->close(Status(Code::cancelled, "enough"));
  EXPECT_TRUE(completion.done());
}

// A target that takes that many puts, one after the other.
std::jthread takePuts(RawPeer& peer, size_t count) {
  return std::jthread([&peer, count] {
    for (size_t i = 0; i < count; ++i) {
      const std::string header = peer.hear(Request::kSize);
      if (header.size() < Request::kSize) return;
      const Request request = Request::unpack(header.data());
      if (peer.hear(request.size).size() < request.size) return;
      std::string done(Reply::kSize, '\0');
      Reply{static_cast<uint32_t>(ReplyKind::done), 0, request.id, 0}.pack(done.data());
      if (!peer.say(done)) return;
    }
  });
}

// More than one stream has to do, so that the link dials another.
Status putMuch(Transport& transport, Link& link) {
  constexpr size_t kPuts = 8;
  std::string bytes(kPiece, 'x');
  auto registration =
      *transport.registerRegion({bytes.data(), bytes.size(), Device{}}, Access::readWrite);
  auto remote = *link.importKey(Key{1, bytes.size(), true}.encode(), kPatience, nullptr);
  Completion completion(kPuts);
  std::vector<Op> puts(kPuts, Op{OpKind::put, bytes.data(), registration.get(), remote.get(), 0,
                                 bytes.size(), &completion});
  std::span<const Op> rest(puts);
  for (Deadline deadline = kPatience; !completion.done() && !deadline.passed();) {
    rest = rest.subspan(link.post(rest));
    transport.progress(std::chrono::milliseconds(50));
  }
  return completion.done() ? completion.status() : Status(Code::failed, "it hangs");
}

TEST_F(TcpOrigin, goesOnWithOneStreamWhereTheSecondHangs) {
  start(/*streams=*/2);
  RawPeer peer = settledForwardStream();
  swallowConnections();
  auto target = takePuts(peer, 2 * 8);
  const Status first = putMuch(*transport_, *link_);
  EXPECT_TRUE(first.ok()) << first.toString();
  for (Deadline late = 2 * kConnectTimeout; !late.passed();) {
    transport_->progress(std::chrono::milliseconds(50));
  }
  const Status second = putMuch(*transport_, *link_);
  EXPECT_TRUE(second.ok()) << second.toString();
  link_->close(Status(Code::cancelled, "enough"));
}

TEST_F(TcpOrigin, goesOnWithOneStreamWhereTheSecondIsRefused) {
  start(/*streams=*/2);
  RawPeer peer = settledForwardStream();
  listening_.fd.reset();
  auto target = takePuts(peer, 2 * 8);
  for (int i = 0; i < 2; ++i) {
    const Status status = putMuch(*transport_, *link_);
    EXPECT_TRUE(status.ok()) << status.toString();
  }
  link_->close(Status(Code::cancelled, "enough"));
}

}  // namespace
}  // namespace hmc::tcp
