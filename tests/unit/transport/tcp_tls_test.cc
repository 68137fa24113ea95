#include <gmock/gmock.h>

#include "base/tls_context.h"
#include "unit/transport/tcp_pair.h"

// Encrypted streams: who is served, and which end of a stream is believed.
namespace hmc::tcp {
namespace {

using testing::HasSubstr;

std::shared_ptr<TlsContext> contextWith(const std::string& secret) {
  return *TlsContext::forSecrets([secret](std::string_view) { return secret; });
}

// A peer that encrypts by hand.
class TlsPeer {
 public:
  TlsPeer(RawPeer peer, std::shared_ptr<TlsContext> context, std::unique_ptr<TlsSession> session)
      : peer_(std::move(peer)), context_(std::move(context)), session_(std::move(session)) {}
  static TlsPeer dialTo(const std::string& linkAddress, const std::string& credentials) {
    RawPeer peer = RawPeer::dialTo(linkAddress);
    auto context = contextWith("");
    auto session = *context->dial(peer.fd(), Address::decode(linkAddress)->token, credentials);
    return {std::move(peer), std::move(context), std::move(session)};
  }
  static TlsPeer acceptedBy(RawPeer peer, const std::string& credentials) {
    auto context = contextWith(credentials);
    auto session = *context->accept(peer.fd());
    return {std::move(peer), std::move(context), std::move(session)};
  }

  bool say(const std::string& bytes) {
    for (size_t done = 0; done < bytes.size();) {
      const iovec part{const_cast<char*>(bytes.data()) + done, bytes.size() - done};
      const TlsMoved moved = session_->write({&part, 1});
      done += moved.bytes;
      if (moved.errnum != 0 || (moved.bytes == 0 && !wait())) return false;
    }
    return true;
  }
  // That many bytes; fewer when there is an end.
  std::string hear(size_t count) {
    std::string bytes(count, '\0');
    size_t got = 0;
    while (got < count) {
      const iovec part{bytes.data() + got, count - got};
      const TlsMoved moved = session_->read({&part, 1});
      got += moved.bytes;
      ended_ = moved.ended;
      if (moved.ended || moved.errnum != 0 || (moved.bytes == 0 && !wait())) break;
    }
    return bytes.substr(0, got);
  }
  // Whether the last hear() met a goodbye.
  bool ended() const { return ended_; }
  int fd() const { return peer_.fd(); }
  TlsSession& session() { return *session_; }

 private:
  bool wait() const {
    pollfd waiting{peer_.fd(), POLLIN, 0};
    return poll(&waiting, 1, Deadline(kPatience).leftMs()) == 1;
  }
  RawPeer peer_;
  std::shared_ptr<TlsContext> context_;
  std::unique_ptr<TlsSession> session_;
  bool ended_ = false;
};

class TlsTarget : public TcpTarget {
 protected:
  void SetUp() override { start({.tls = true}); }
  std::string putOf(const std::string& bytes) {
    return requestBytes(RequestKind::put, 77, regionId(), 0, bytes.size()) + bytes;
  }
};

TEST_F(TlsTarget, aPeerThatKnowsTheCredentialsIsServed) {
  TlsPeer peer = TlsPeer::dialTo(link_->address(), options_.credentials);
  // The request comes with the greeting, before anybody serves the stream.
  ASSERT_TRUE(peer.say(greeting() + putOf("bytes")));
  EXPECT_EQ(peer.hear(Reply::kSize).size(), Reply::kSize);
  EXPECT_EQ(memory_.substr(0, 6), "bytes.");
}

TEST_F(TlsTarget, manyRequestsInOneTurnAreAllServed) {
  TlsPeer peer = TlsPeer::dialTo(link_->address(), options_.credentials);
  ASSERT_TRUE(peer.say(greeting()));
  constexpr size_t kRequests = 40;
  const std::string put = putOf(std::string(size_t{200} << 10, 'x'));
  for (size_t i = 0; i < kRequests; ++i) ASSERT_TRUE(peer.say(put));
  EXPECT_EQ(peer.hear(kRequests * Reply::kSize).size(), kRequests * Reply::kSize);
}

TEST(TlsStreams, changeTheirKeysWhileTheyMove) {
  constexpr uint64_t kRecordsPerKey = 3;
  const TcpOptions options{.tls = true, .recordsPerKey = kRecordsPerKey};
  TcpPair pair(options, options);
  std::string there(size_t{2} << 20, '.');
  std::string here(there.size(), 'h');
  const auto shared = pair.share({there.data(), there.size(), Device{}});
  for (size_t at = 0; at < here.size(); at += kPiece) {
    const size_t size = std::min(kPiece, here.size() - at);
    ASSERT_TRUE(pair.run(OpKind::put, here.data() + at, at, size).ok());
    std::fill_n(here.data() + at, size, '.');
    ASSERT_TRUE(pair.run(OpKind::get, here.data() + at, at, size).ok());
  }
  EXPECT_TRUE(there == std::string(there.size(), 'h'));
  EXPECT_TRUE(here == there);
}

TEST_F(TlsTarget, aPlainPeerIsHungUpOn) {
  RawPeer plain = RawPeer::dialTo(link_->address());
  plain.say(greeting() + putOf("!"));
  EXPECT_TRUE(plain.isHungUpOn());
  EXPECT_EQ(memory_[0], '.');
}

TEST_F(TlsTarget, otherCredentialsAreHungUpOn) {
  TlsPeer thief = TlsPeer::dialTo(link_->address(), "what somebody else knows");
  EXPECT_FALSE(thief.say(greeting() + putOf("!")) && !thief.hear(1).empty());
  EXPECT_EQ(memory_[0], '.');
}

TEST_F(TlsTarget, aPeerThatIsCutOffHearsAGoodbye) {
  TlsPeer peer = TlsPeer::dialTo(link_->address(), options_.credentials);
  ASSERT_TRUE(peer.say(greeting() + putOf("bytes")));
  EXPECT_EQ(peer.hear(Reply::kSize).size(), Reply::kSize);
  shutdown(peer.fd(), SHUT_WR);
  constexpr size_t kFarewell = 32;
  EXPECT_LE(peer.hear(kFarewell + 1).size(), kFarewell);
  EXPECT_TRUE(peer.ended()) << "the target applies nothing more, and says so";
}

// Our side of a link, with a target that is played by hand.
class TlsOrigin : public testing::Test {
 protected:
  static constexpr std::chrono::milliseconds kLease{1000};

  void start(std::chrono::milliseconds lease) {
    listening_ = *listenOn("127.0.0.1");
    transport_ = *create({.streams = 1, .tls = true});
    registration_ =
        *transport_->registerRegion({memory_.data(), memory_.size(), Device{}}, Access::readWrite);
    const LinkOptions options = test::linkOptions(true, lease);
    link_ = *transport_->openLink(options);
    Address peer{listening_.port, std::string(kTokenSize, 't')};
    ASSERT_TRUE(link_->connect(peer.encode()).ok());
    remote_ = *link_->importKey(Key{1, memory_.size(), true}.encode(), kPatience, nullptr);
    put_ = {OpKind::put, memory_.data(), registration_.get(), remote_.get(), 0, 64, &completion_};
    ASSERT_EQ(link_->post({&put_, 1}), 1u);
    // The first connection is the one over which the link asks, and nobody moves it but progress().
    pollfd waiting{listening_.fd.get(), POLLIN, 0};
    ASSERT_EQ(poll(&waiting, 1, Deadline(kPatience).leftMs()), 1);
    target_.emplace(
        TlsPeer::acceptedBy(RawPeer(acceptFrom(listening_.fd.get())), options.credentials));
    const size_t expected = Greeting::kSize + Request::kSize + 64;
    std::jthread moves([this](const std::stop_token& stop) {
      while (!stop.stop_requested()) transport_->progress(std::chrono::milliseconds(10));
    });
    ASSERT_EQ(target_->hear(expected).size(), expected);
  }
  // How long the put takes to end from here on.
  std::chrono::nanoseconds untilItEnds() {
    const auto began = Deadline::Clock::now();
    const Deadline deadline = kPatience;
    while (!completion_.done() && !deadline.passed())
      transport_->progress(std::chrono::milliseconds(20));
    EXPECT_TRUE(completion_.done());
    EXPECT_EQ(completion_.status().code(), Code::disconnected);
    return Deadline::Clock::now() - began;
  }

  std::string memory_ = std::string(100000, '.');
  Listening listening_;
  std::unique_ptr<Transport> transport_;
  std::unique_ptr<Registration> registration_;
  std::unique_ptr<Link> link_;
  std::unique_ptr<RemoteMemory> remote_;
  Completion completion_{1};
  Op put_{};
  std::optional<TlsPeer> target_;
};

TEST_F(TlsOrigin, aSignedEndIsAFence) {
  start(2 * kPatience);
  target_->session().sayGoodbye();
  EXPECT_LT(untilItEnds(), kPatience);
}

TEST_F(TlsOrigin, anEndThatAnybodyCanForgeIsNone) {
  start(kLease);
  shutdown(target_->fd(), SHUT_WR);
  EXPECT_GE(untilItEnds(), kLease * 3 / 4);
  EXPECT_THAT(completion_.status().message(), HasSubstr("without the peer's goodbye"));
}

TEST_F(TlsOrigin, neitherIsAReset) {
  start(kLease);
  abortOnClose(target_->fd());
  target_->session().silence();
  target_.reset();
  EXPECT_GE(untilItEnds(), kLease * 3 / 4);
}

}  // namespace
}  // namespace hmc::tcp
