// Runs with the fake libibverbs, which checks keys, ranges and access as a NIC does.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fakes/fake_libibverbs.h"
#include "unit/node/fake_pair.h"
#include "unit/node/granted.h"
#include "unit/node/path_pair.h"

namespace hmc {
namespace {

using testing::HasSubstr;

constexpr size_t kNicSize = 20000;

class GrantOverVerbs : public testing::Test {
 protected:
  void SetUp() override {
    must(Node::create(named("probe", {"verbs"})));
    if (!test::fakeVerbs<test::FakeRegistering*()>("fakeRegistering"))
      GTEST_SKIP() << "not the fake libibverbs: set LD_LIBRARY_PATH to its folder";
    nodes_ = std::make_unique<PathPair>(PathCase{"verbs", "verbs", "verbs", {}});
    target_ = FakePair::allocate(*nodes_->a, "target", kNicSize);
    source_ = FakePair::allocate(*nodes_->b, "", kNicSize);
    std::memset(target_->host(), '.', kNicSize);
    std::memset(source_->host(), 'x', kNicSize);
  }
  void TearDown() override {
    source_.reset();
    target_.reset();
    nodes_.reset();
  }
  // A key that says of itself that it is for the whole region and for writing. Its offsets count
  // from where the granted range begins.
  static std::string lieOf(const std::string& key) {
    Reader in(key);
    const uint32_t magic = in.u32();
    const uint64_t base = in.u64();
    (void)in.u64();
    (void)in.u8();
    return Writer().u32(magic).u64(base).u64(UINT64_MAX).u8(1).raw(in.raw(in.left())).take();
  }
  Status putWith(const std::string& key, uint64_t offset, size_t size) const {
    const auto link = must(nodes_->toA->link(0, kDefaultTimeout));
    const auto remote = must(link->importKey(key, kDefaultTimeout, nullptr));
    return putTo(*nodes_->b, *link, *remote, *source_, offset, size);
  }
  size_t changed() const {
    const std::string now(target_->host(), kNicSize);
    return static_cast<size_t>(std::count(now.begin(), now.end(), 'x'));
  }

  std::unique_ptr<PathPair> nodes_;
  std::shared_ptr<LocalMemory> target_;
  std::shared_ptr<LocalMemory> source_;
};

TEST_F(GrantOverVerbs, isARegistrationOfItsOwn) {
  const Grant part = must(target_->grant({5000, 100, {}, Timeout(0), ""}));
  const std::string lie = lieOf(keyOf(*nodes_->toA, part, "verbs"));
  EXPECT_TRUE(putWith(lie, 90, 10).ok());
  EXPECT_EQ(target_->host()[5090], 'x');
  EXPECT_FALSE(putWith(lie, 91, 10).ok());
  EXPECT_FALSE(putWith(lie, 100, 1).ok());
  const Grant reading = must(part.narrow({0, 0, Access::read, Timeout(0), ""}));
  EXPECT_FALSE(putWith(lieOf(keyOf(*nodes_->toA, reading, "verbs")), 0, 8).ok());
  EXPECT_EQ(changed(), 10u);
}

// The NIC knows the same range for transfers of the owner's own, and for another grant.
TEST_F(GrantOverVerbs, endsWhateverElseIsRegisteredThere) {
  const Grant one = must(target_->grant({}));
  const Grant other = must(target_->grant({}));
  const std::string byOne = keyOf(*nodes_->toA, one, "verbs");
  const std::string byOther = keyOf(*nodes_->toA, other, "verbs");
  ASSERT_TRUE(target_->through(0).registration);
  ASSERT_TRUE(putWith(byOne, 0, 1).ok());
  ASSERT_TRUE(target_->revoke(one, kDefaultTimeout).ok());
  EXPECT_FALSE(putWith(byOne, 1, 1).ok());
  EXPECT_TRUE(putWith(byOther, 1, 1).ok());
  EXPECT_EQ(changed(), 2u);
}

// What was opened by name is taken back from a peer that kept the key, too.
TEST_F(GrantOverVerbs, neitherDoesAKeyThatANameGaveOutlastItsRevocation) {
  const std::string request = Writer().string("target").u32(1).string("verbs").take();
  const auto reply = must(nodes_->toA->channel().call(kOpenRegion, request, kDefaultTimeout));
  const std::string key = must(RegionDescription::decode(reply)).offers.front().key;
  ASSERT_TRUE(target_->through(0).registration);
  ASSERT_TRUE(putWith(key, 0, 1).ok());
  ASSERT_TRUE(target_->revoke(kDefaultTimeout).ok());
  EXPECT_FALSE(putWith(key, 1, 1).ok());
  EXPECT_EQ(changed(), 1u);
}

}  // namespace
}  // namespace hmc
