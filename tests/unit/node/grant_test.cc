// Memory that peers reach by grants, over each path.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

#include "transport/ipc/remote.h"
#include "transport/tcp/address.h"
#include "unit/node/fake_pair.h"
#include "unit/node/granted.h"
#include "unit/node/path_pair.h"

namespace hmc {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::Not;

constexpr size_t kPageSize = 4096;
constexpr size_t kTargetSize = 4 * kPageSize;

class NodeGrant : public testing::TestWithParam<PathCase> {
 protected:
  void SetUp() override {
    target_ = GetParam().allocated
                  ? FakePair::allocate(*nodes_.a, "target", kTargetSize)
                  : must(nodes_.a->registerMemory("target", {bytes_, kTargetSize, Device{}},
                                                  Access::readWrite, /*owned=*/false));
    std::memset(target_->host(), '.', kTargetSize);
    std::memset(source_->host(), 'x', kTargetSize);
  }
  Grant grant(size_t offset, size_t size, Access access = Access::readWrite,
              Timeout lifetime = Timeout(0)) const {
    return must(target_->grant({offset, size, access, lifetime, ""}));
  }
  Result<std::shared_ptr<RemoteMapping>> open(const Grant& by) const {
    return nodes_.b->open(nodes_.toA, by, {}, kDefaultTimeout);
  }
  Status put(const RemoteMapping& remote, uint64_t offset, size_t size) const {
    return remote.run(OpKind::put, *source_, 0, offset, size, kDefaultTimeout);
  }
  // Where the target's bytes have changed: the first one and their number.
  std::pair<size_t, size_t> changed() const {
    const std::string now(target_->host(), kTargetSize);
    return {now.find_first_not_of('.'),
            kTargetSize - static_cast<size_t>(std::count(now.begin(), now.end(), '.'))};
  }
  // By a peer whose own checks say yes to everything.
  Status putAnyway(const Grant& by, uint64_t offset, size_t size) const;

  alignas(kPageSize) char bytes_[kTargetSize];
  PathPair nodes_{GetParam()};
  std::shared_ptr<LocalMemory> target_;
  std::shared_ptr<LocalMemory> source_ = FakePair::allocate(*nodes_.b, "", kTargetSize);
};

TEST_P(NodeGrant, opensAPartOfARegion) {
  const auto remote = must(open(grant(kPageSize, kPageSize)));
  EXPECT_EQ(remote->size(), kPageSize);
  EXPECT_THAT(remote->path(), HasSubstr(GetParam().path));
  ASSERT_TRUE(put(*remote, 10, 20).ok());
  EXPECT_EQ(changed(), std::make_pair(kPageSize + 10, size_t{20}));
  EXPECT_EQ(put(*remote, kPageSize - 10, 11).code(), Code::outOfRange);
  EXPECT_EQ(put(*remote, kPageSize, 1).code(), Code::outOfRange);
  EXPECT_EQ(remote->run(OpKind::get, *source_, 0, kPageSize, 1, kDefaultTimeout).code(),
            Code::outOfRange);
  EXPECT_EQ(changed().second, 20u);
  EXPECT_EQ(remote->mapped() ? remote->data()[10] : 'x', 'x');
}

TEST_P(NodeGrant, forReadingIsNotForWriting) {
  const Grant both = grant(0, 0);
  for (const Grant& by :
       {grant(0, 0, Access::read), must(both.narrow({0, 0, Access::read, Timeout(0), ""}))}) {
    const auto remote = must(open(by));
    EXPECT_EQ(remote->access(), Access::read);
    EXPECT_EQ(put(*remote, 0, 8).code(), Code::permissionDenied);
    ASSERT_TRUE(remote->run(OpKind::get, *source_, 0, 0, 8, kDefaultTimeout).ok());
    EXPECT_EQ(std::string(source_->host(), 8), "........");
  }
  EXPECT_EQ(changed().second, 0u);
}

TEST_P(NodeGrant, bytesThatShareAPageAreReachedAlone) {
  const auto remote = must(open(grant(100, 200)));
  EXPECT_FALSE(remote->mapped()) << "others lie in the same page";
  ASSERT_TRUE(put(*remote, 0, 200).ok());
  EXPECT_EQ(changed(), std::make_pair(size_t{100}, size_t{200}));
  EXPECT_EQ(put(*remote, 1, 200).code(), Code::outOfRange);
  const auto last = must(open(grant(3 * kPageSize, 0)));
  EXPECT_EQ(last->mapped(), GetParam().path == "mapped") << "the end of the memory";
}

Status NodeGrant::putAnyway(const Grant& by, uint64_t offset, size_t size) const {
  const auto key = keyOf(*nodes_.toA, by, GetParam().transport);
  const auto link = must(nodes_.toA->link(0, kDefaultTimeout));
  std::unique_ptr<RemoteMemory> forged;
  if (GetParam().transport == "tcp") {
    auto lie = must(tcp::Key::decode(key));
    lie.size = UINT64_MAX;
    lie.writable = true;
    forged = must(link->importKey(lie.encode(), kDefaultTimeout, nullptr));
  } else {
    const auto honest = must(link->importKey(key, kDefaultTimeout, nullptr));
    auto& ring = static_cast<ipc::RingRemote&>(*honest);
    ipc::Description lie;
    lie.size = UINT64_MAX;
    lie.access = Access::readWrite;
    lie.region = ring.region;
    forged = std::make_unique<ipc::RingRemote>(lie, ring.ring, "");
  }
  return putTo(*nodes_.b, *link, *forged, *source_, offset, size);
}

TEST_P(NodeGrant, isCheckedAtTheTarget) {
  if (GetParam().path != "tcp" && GetParam().path != "ring")
    GTEST_SKIP() << "no software of the target's sees the bytes of " << GetParam().path;
  const Grant part = grant(kPageSize, 100);
  EXPECT_TRUE(putAnyway(part, 90, 10).ok()) << "what it does not lie about";
  EXPECT_EQ(changed(), std::make_pair(kPageSize + 90, size_t{10}));
  EXPECT_EQ(putAnyway(part, 91, 10).code(), Code::outOfRange);
  EXPECT_EQ(putAnyway(part, 100, 1).code(), Code::outOfRange);
  EXPECT_EQ(putAnyway(part, UINT64_MAX - kPageSize, 8).code(), Code::outOfRange);
  EXPECT_EQ(putAnyway(grant(0, 100, Access::read), 0, 8).code(), Code::permissionDenied);
  EXPECT_EQ(changed().second, 10u);
}

TEST_P(NodeGrant, takesTheMemoryBackWhenItEnds) {
  std::optional<Grant> brief;
  const auto remote = openBriefly([&](Timeout lifetime) {
    return open(brief.emplace(grant(0, kPageSize, Access::readWrite, lifetime)));
  });
  const auto forever = must(open(grant(kPageSize, kPageSize)));
  PuttingThread writer(remote, source_, 8);
  writer.await(writer.failed, 1);
  const Status outcome = writer.outcome();
  EXPECT_EQ(outcome.code(), Code::notFound);
  EXPECT_THAT(outcome.message(), HasSubstr("or the grant has expired"));
  std::memset(target_->host(), '.', kTargetSize);
  EXPECT_FALSE(put(*remote, 0, 8).ok());
  EXPECT_EQ(changed().second, 0u);
  const Status again = open(*brief).status();
  EXPECT_EQ(again.code(), Code::permissionDenied);
  EXPECT_THAT(again.message(), HasSubstr("has expired"));
  EXPECT_TRUE(put(*forever, 0, 8).ok()) << "what was granted apart from it";
  EXPECT_TRUE(nodes_.toA->channel().status().ok());
}

TEST_P(NodeGrant, isRevokedAloneOrWithTheRegion) {
  const Grant one = grant(0, kPageSize);
  const Grant other = grant(0, kPageSize);
  const auto byOne = must(open(one));
  const auto byPartOfOne = must(open(must(one.narrow({0, 100, {}, Timeout(0), ""}))));
  const auto byOther = must(open(other));
  const auto byName = nodes_.open("target");
  ASSERT_TRUE(target_->revoke(one, kDefaultTimeout).ok());
  EXPECT_EQ(put(*byOne, 0, 8).code(), Code::notFound);
  EXPECT_EQ(put(*byPartOfOne, 0, 8).code(), Code::notFound);
  EXPECT_THAT(open(one).status().message(), HasSubstr("was revoked by its owner"));
  EXPECT_TRUE(put(*byOther, 0, 8).ok());
  EXPECT_TRUE(put(*byName, 0, 8).ok());
  ASSERT_TRUE(target_->revoke(kDefaultTimeout).ok());
  std::memset(target_->host(), '.', kTargetSize);
  EXPECT_EQ(put(*byOther, 0, 8).code(), Code::notFound);
  EXPECT_FALSE(put(*byName, 0, 8).ok());
  EXPECT_EQ(changed().second, 0u);
  EXPECT_EQ(open(other).status().code(), Code::notFound);
  EXPECT_EQ(target_->grant({}).status().code(), Code::notFound);
  EXPECT_TRUE(nodes_.toA->channel().status().ok());
}

TEST_P(NodeGrant, goesWithTheMemory) {
  const auto remote = must(open(grant(0, kPageSize)));
  ASSERT_TRUE(put(*remote, 0, 8).ok());
  target_.reset();
  EXPECT_EQ(put(*remote, 0, 8).code(), Code::notFound);
}

INSTANTIATE_TEST_SUITE_P(Paths, NodeGrant, testing::ValuesIn(everyPath()),
                         [](const auto& one) { return one.param.name; });

}  // namespace
}  // namespace hmc
