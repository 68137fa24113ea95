#include <gmock/gmock.h>

#include <algorithm>
#include <optional>

#include "process/altering_proxy.h"
#include "unit/transport/tcp_pair.h"

// Checksums over what tcp moves: a bit that flips on the way fails the transfer that it belongs to,
// or the link, and is never taken for good.
namespace hmc::tcp {
namespace {

using test::AlteringProxy;
using test::BitFlip;
using testing::HasSubstr;
using Way = AlteringProxy::Way;

constexpr size_t kSmall = 100;
constexpr size_t kLarge = 100000;

// A pair with a proxy between them, over one stream each way.
class TcpIntegrity : public testing::Test {
 protected:
  void start(bool atOrigin = true, bool atTarget = true) {
    registration_.reset();
    pair_.reset();
    proxy_.reset();
    memory_.assign(kLarge, '.');
    const auto options = [](bool integrity) {
      return TcpOptions{.streams = 1, .integrity = integrity};
    };
    pair_.emplace(options(atOrigin), options(atTarget), [this](Address at) {
      proxy_.emplace(at.port, [this](Way way, uint64_t offset, std::span<char> bytes) {
        flip_(way, offset, bytes);
      });
      at.port = proxy_->port();
      return at;
    });
    registration_ = pair_->share({memory_.data(), memory_.size(), Device{}});
  }
  Status put(size_t size) { return pair_->run(OpKind::put, local_.data(), 0, size); }
  Status get(size_t size) { return pair_->run(OpKind::get, local_.data(), 0, size); }
  uint64_t alteredAtOrigin() const { return pair_->origin->counters().totals().altered; }
  uint64_t alteredAtTarget() const { return pair_->target->counters().totals().altered; }

  std::string local_ = std::string(kLarge, 'l');
  std::string memory_;
  BitFlip flip_;
  std::optional<AlteringProxy> proxy_;
  std::optional<TcpPair> pair_;
  std::unique_ptr<Registration> registration_;
};

TEST_F(TcpIntegrity, aFlippedBitOfAPutFailsThatPutAndNothingElse) {
  for (size_t size : {kSmall, kLarge}) {
    const uint64_t data = Greeting::kSize + Request::kSize;
    for (uint64_t at : {data, data + size / 2, data + size - 1, data + size, data + size + 3}) {
      start();
      flip_.arm(Way::toListener, at, static_cast<int>(at % 8));
      const Status status = put(size);
      ASSERT_TRUE(flip_.done());
      EXPECT_EQ(status.code(), Code::failed) << status.toString();
      EXPECT_THAT(status.message(), HasSubstr("altered on the way"));
      EXPECT_EQ(alteredAtTarget(), 1u);
      if (size == kSmall) {
        EXPECT_EQ(memory_, std::string(kLarge, '.'));
      }
      EXPECT_TRUE(put(size).ok());
      EXPECT_TRUE(
          std::equal(local_.begin(), local_.begin() + static_cast<long>(size), memory_.begin()));
    }
  }
}

TEST_F(TcpIntegrity, aFlippedBitOfAGetFailsThatGetAndNothingElse) {
  for (size_t size : {kSmall, kLarge}) {
    const uint64_t data = Reply::kSize;
    for (uint64_t at : {data, data + size / 2, data + size - 1, data + size, data + size + 3}) {
      start();
      flip_.arm(Way::toDialler, at, static_cast<int>(at % 8));
      const Status status = get(size);
      ASSERT_TRUE(flip_.done());
      EXPECT_EQ(status.code(), Code::failed) << status.toString();
      EXPECT_THAT(status.message(), HasSubstr("altered on the way"));
      EXPECT_EQ(alteredAtOrigin(), 1u);
      EXPECT_TRUE(get(size).ok());
      EXPECT_TRUE(std::all_of(local_.begin(), local_.begin() + static_cast<long>(size),
                              [](char byte) { return byte == '.'; }));
    }
  }
}

TEST_F(TcpIntegrity, aFlippedBitOfAHeaderEndsTheLinkAtOnce) {
  for (size_t at = 0; at < kHeaderSize; at += 3) {
    for (const Way way : {Way::toListener, Way::toDialler}) {
      start();
      const bool request = way == Way::toListener;
      flip_.arm(way, (request ? Greeting::kSize : 0) + at, static_cast<int>(at % 8));
      const Status status = put(kSmall);
      ASSERT_TRUE(flip_.done());
      EXPECT_EQ(status.code(), Code::disconnected) << status.toString();
      EXPECT_THAT(status.message(), HasSubstr("altered on the way"));
      EXPECT_EQ(request ? alteredAtTarget() : alteredAtOrigin(), 1u);
      if (request) {
        EXPECT_EQ(memory_, std::string(kLarge, '.'));
      }
    }
  }
}

TEST_F(TcpIntegrity, aFlippedBitOfARefusalIsNoticedToo) {
  start();
  registration_.reset();
  flip_.arm(Way::toDialler, Reply::kSize + 3, 2);
  const Status status = put(kSmall);
  EXPECT_EQ(status.code(), Code::failed) << status.toString();
  EXPECT_THAT(status.message(), HasSubstr("altered on the way"));
  EXPECT_EQ(put(kSmall).code(), Code::notFound);
}

TEST_F(TcpIntegrity, takesOneSideThatWantsIt) {
  for (const bool atOrigin : {true, false}) {
    start(atOrigin, !atOrigin);
    EXPECT_EQ(pair_->remote->path(), "checked, 1 stream");
    flip_.arm(Way::toListener, Greeting::kSize + Request::kSize + 5, 1);
    EXPECT_FALSE(put(kSmall).ok());
    EXPECT_TRUE(put(kSmall).ok());
  }
}

// What it is good for.
TEST_F(TcpIntegrity, nobodyNoticesWhereNeitherSideWantsIt) {
  start(false, false);
  EXPECT_EQ(pair_->remote->path(), "1 stream");
  flip_.arm(Way::toListener, Greeting::kSize + Request::kSize, 0);
  EXPECT_TRUE(put(kSmall).ok());
  EXPECT_EQ(memory_[0], 'l' ^ 1);
}

// Its words on the control connection may have been altered.
TEST_F(TcpTarget, whoseSideChecksServesNoStreamWithoutChecksums) {
  start({.integrity = true});
  RawPeer peer = RawPeer::dialTo(link_->address());
  peer.say(greeting() + requestBytes(RequestKind::put, 1, regionId(), 0, 5) + "bytes");
  EXPECT_TRUE(peer.isHungUpOn());
  EXPECT_EQ(memory_[0], '.');
}

TEST_F(TcpIntegrity, tlsNeedsNoChecksums) {
  const TcpOptions options{.streams = 1, .tls = true, .integrity = true};
  pair_.emplace(options, options);
  registration_ = pair_->share({local_.data(), local_.size(), Device{}});
  EXPECT_EQ(pair_->remote->path(), "tls, 1 stream");
}

}  // namespace
}  // namespace hmc::tcp
