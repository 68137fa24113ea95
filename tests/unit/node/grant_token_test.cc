#include "node/grant_token.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "base/codec.h"
#include "base/proof.h"
#include "base/random.h"
#include "unit/node/node_pair.h"

namespace hmc {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

const std::string kKey = randomBytes(32);
constexpr uint64_t kWhole = 10000;
constexpr int64_t kSecond = 1000000000;

GrantToken granted(const GrantOptions& options = {}, Access access = Access::readWrite) {
  GrantToken head;
  head.owner = randomBytes(GrantToken::kIdSize);
  head.number = 7;
  head.region = "target";
  head.id = randomBytes(GrantToken::kIdSize);
  return must(GrantToken::make(kKey, std::move(head), {0, kWhole, access, 0, ""}, options));
}

// As bytes that have travelled.
GrantToken sent(const GrantToken& token) {
  return must(GrantToken::decode(token.encode()));
}

GrantOptions with(size_t offset, size_t size) {
  GrantOptions options;
  options.offset = offset;
  options.size = size;
  return options;
}

GrantOptions with(Access access) {
  GrantOptions options;
  options.access = access;
  return options;
}

GrantOptions with(Timeout lifetime) {
  GrantOptions options;
  options.lifetime = lifetime;
  return options;
}

GrantOptions forPeer(const std::string& id) {
  GrantOptions options;
  options.peerId = id;
  return options;
}

// A holder who does not use our code: its limit, with a MAC that is right.
GrantToken widened(const GrantToken& from, const std::function<void(GrantLimit&)>& change) {
  GrantLimit limit = from.allowed();
  change(limit);
  GrantToken made = from;
  made.mac = proof(from.mac, limit.encode());
  made.limits.push_back(limit);
  return made;
}

TEST(GrantToken, allowsWhatItsOwnerSaid) {
  const GrantToken whole = sent(granted());
  EXPECT_TRUE(whole.verify(kKey).ok());
  EXPECT_TRUE(whole.checkUse("anybody", wallClock()).ok());
  EXPECT_EQ(whole.allowed().size, kWhole);
  EXPECT_EQ(whole.allowed().access, Access::readWrite);

  GrantOptions options = with(100, 50);
  options.access = Access::read;
  const GrantToken part = sent(granted(options));
  EXPECT_TRUE(part.verify(kKey).ok());
  EXPECT_EQ(part.allowed().offset, 100u);
  EXPECT_EQ(part.allowed().size, 50u);
  EXPECT_EQ(part.allowed().access, Access::read);
  EXPECT_EQ(granted(with(9000, 0)).allowed().size, 1000u) << "all that follows";
}

TEST(GrantToken, isRefusedWithAnyBitChanged) {
  GrantToken token = granted(with(100, 5000));
  token = must(token.narrow(forPeer("a peer's id")));
  token = must(token.narrow(with(1h)));
  const std::string good = token.encode();
  ASSERT_TRUE(must(GrantToken::decode(good)).verify(kKey).ok());
  for (size_t bit = 0; bit < 8 * good.size(); ++bit) {
    std::string bad = good;
    bad[bit / 8] = static_cast<char>(bad[bit / 8] ^ (1 << bit % 8));
    const auto read = GrantToken::decode(bad);
    EXPECT_FALSE(read.ok() && read->verify(kKey).ok()) << "bit " << bit;
  }
  for (size_t size = 0; size < good.size(); ++size)
    EXPECT_FALSE(GrantToken::decode(good.substr(0, size)).ok()) << size;
  EXPECT_FALSE(GrantToken::decode(good + "x").ok());
  EXPECT_FALSE(token.verify(randomBytes(32)).ok()) << "another owner's key";
}

TEST(GrantToken, narrowsFromHandToHand) {
  const GrantToken first = sent(granted(with(1000, 4000)));
  GrantOptions second = with(1000, 2000);
  second.lifetime = 1h;
  GrantOptions third = with(500, 0);
  third.access = Access::read;
  third.peerId = "the last one";
  const GrantToken token = sent(must(sent(must(first.narrow(second))).narrow(third)));
  EXPECT_TRUE(token.verify(kKey).ok());
  EXPECT_EQ(token.allowed().offset, 2500u);
  EXPECT_EQ(token.allowed().size, 1500u);
  EXPECT_EQ(token.allowed().access, Access::read);
  EXPECT_GT(token.allowed().expires, wallClock());
  EXPECT_TRUE(token.checkUse("the last one", wallClock()).ok());
  EXPECT_TRUE(first.verify(kKey).ok()) << "what it was made of stays as it was";
  EXPECT_EQ(first.id, token.id);
}

TEST(GrantToken, doesNotNarrowToMoreThanItAllows) {
  const GrantToken token = granted(with(1000, 4000));
  for (const auto& [offset, size] : {std::pair<size_t, size_t>{0, 4001},
                                     {1, 4000},
                                     {4000, 0},
                                     {4000, 1},
                                     {SIZE_MAX, 2},
                                     {2, SIZE_MAX}}) {
    EXPECT_EQ(token.narrow(with(offset, size)).status().code(), Code::outOfRange) << offset;
  }
  EXPECT_EQ(granted({}, Access::read).narrow(with(Access::readWrite)).status().code(),
            Code::permissionDenied);
  EXPECT_EQ(token.narrow(with(Timeout(-1ns))).status().code(), Code::invalidArgument);
  const GrantToken bound = granted(forPeer("one"));
  EXPECT_EQ(bound.narrow(forPeer("another")).status().code(), Code::permissionDenied);
  EXPECT_TRUE(must(bound.narrow({})).checkUse("one", 0).ok());
  EXPECT_EQ(must(bound.narrow({})).checkUse("another", 0).code(), Code::permissionDenied);

  const GrantToken brief = granted(with(1s));
  EXPECT_EQ(must(brief.narrow(with(1h))).allowed().expires, brief.allowed().expires);
  EXPECT_EQ(must(brief.narrow({})).allowed().expires, brief.allowed().expires);
  EXPECT_LT(must(brief.narrow(with(1ms))).allowed().expires, brief.allowed().expires);
}

TEST(GrantToken, refusesALimitThatAllowsMoreThanTheOneBefore) {
  GrantOptions options = with(1000, 4000);
  options.access = Access::read;
  options.lifetime = 1h;
  options.peerId = "one";
  const GrantToken token = granted(options);
  EXPECT_TRUE(widened(token, [](GrantLimit&) {}).verify(kKey).ok());
  const std::function<void(GrantLimit&)> changes[] = {
      [](GrantLimit& limit) { limit.offset = 999; },
      [](GrantLimit& limit) { limit.size = 4001; },
      [](GrantLimit& limit) { limit.size = 0; },
      [](GrantLimit& limit) { limit.offset = 1001; },
      [](GrantLimit& limit) { limit.offset = UINT64_MAX; },
      [](GrantLimit& limit) { limit.size = UINT64_MAX - 500; },
      [](GrantLimit& limit) { limit.access = Access::readWrite; },
      [](GrantLimit& limit) { limit.expires += kSecond; },
      [](GrantLimit& limit) { limit.expires = 0; },
      [](GrantLimit& limit) { limit.holder.clear(); },
      [](GrantLimit& limit) { limit.holder = holderOf("another"); },
  };
  for (size_t i = 0; i < std::size(changes); ++i) {
    const GrantToken wide = sent(widened(token, changes[i]));
    EXPECT_EQ(wide.verify(kKey).code(), Code::permissionDenied) << "change " << i;
    const GrantToken hidden = widened(wide, [&](GrantLimit& limit) { limit = token.allowed(); });
    EXPECT_EQ(hidden.verify(kKey).code(), Code::permissionDenied) << "behind another, change " << i;
  }
}

TEST(GrantToken, losesNoLimit) {
  const GrantToken first = granted();
  GrantToken second = must(first.narrow(with(0, 10)));
  second.limits.pop_back();
  EXPECT_EQ(second.verify(kKey).code(), Code::permissionDenied);
  GrantToken twice = must(first.narrow(with(0, 10)));
  twice.limits.erase(twice.limits.begin());
  EXPECT_EQ(twice.verify(kKey).code(), Code::permissionDenied);
}

TEST(GrantToken, endsAtItsTime) {
  const GrantToken token = granted(with(Timeout(10s)));
  const int64_t end = token.allowed().expires;
  EXPECT_TRUE(token.checkUse("", end - 1).ok());
  const Status late = token.checkUse("", end + 2 * kSecond);
  EXPECT_EQ(late.code(), Code::permissionDenied);
  EXPECT_THAT(late.message(), HasSubstr("expired 2000 ms ago"));
  EXPECT_FALSE(token.checkUse("", end).ok());
  EXPECT_TRUE(granted(with(Timeout::max())).checkUse("", INT64_MAX - 1).ok());
  EXPECT_TRUE(granted().checkUse("", INT64_MAX).ok());
}

TEST(GrantToken, doesNotTellWhoseItIs) {
  const std::string id = randomBytes(16);
  EXPECT_EQ(granted(forPeer(id)).encode().find(id), std::string::npos);
}

TEST(GrantToken, isNarrowedSixteenTimesAtMost) {
  GrantToken token = granted();
  for (int i = 0; i < 16; ++i) token = sent(must(token.narrow({})));
  EXPECT_TRUE(token.verify(kKey).ok());
  EXPECT_EQ(token.narrow({}).status().code(), Code::exhausted);
  const GrantToken longer = widened(token, [](GrantLimit&) {});
  EXPECT_EQ(GrantToken::decode(longer.encode()).status().code(), Code::invalidArgument);
}

TEST(Grant, travelsAsBytesAndSaysWhatItIsFor) {
  GrantOptions options = with(10, 20);
  options.lifetime = 1h;
  const Grant grant = must(Grant::fromBytes(granted(options).encode()));
  EXPECT_EQ(grant.name(), "target");
  EXPECT_EQ(grant.size(), 20u);
  EXPECT_EQ(grant.access(), Access::readWrite);
  ASSERT_TRUE(grant.expires().has_value());
  EXPECT_GT(*grant.expires(), std::chrono::system_clock::now());
  const Grant narrow = must(grant.narrow(with(Access::read)));
  EXPECT_EQ(narrow.access(), Access::read);
  EXPECT_EQ(must(Grant::fromBytes(narrow.bytes())).bytes(), narrow.bytes());
  EXPECT_FALSE(must(Grant::fromBytes(granted().encode())).expires().has_value());
  EXPECT_EQ(Grant::fromBytes("rubbish").status().code(), Code::invalidArgument);
}

}  // namespace
}  // namespace hmc
