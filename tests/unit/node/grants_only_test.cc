// Runs with HMC_MEMORY_PLUGIN providing a fake accelerator.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "fakes/pattern.h"
#include "memory/copy.h"
#include "unit/node/bare_peer.h"
#include "unit/node/fake_pair.h"
#include "unit/node/granted.h"

// Who may open what of a Node, by which grant.

namespace hmc {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::Not;

NodeOptions grantsOnly(const std::string& name) {
  NodeOptions options = named(name, {"tcp"});
  options.grantsOnly = true;
  return options;
}

GrantOptions onlyFor(const Peer& peer) {
  GrantOptions options;
  options.peerId = peer.id();
  return options;
}

class GrantsOnly : public testing::Test {
 protected:
  Node owner_ = must(Node::create(grantsOnly("owner")));
  std::string address_ = must(owner_.listen("tcp://127.0.0.1:0"));
  LocalRegion target_ = must(owner_.allocate("target", 4096));
  Node b_ = must(Node::create(named("b", {"tcp"})));
  Node c_ = must(Node::create(named("c", {"tcp"})));
  Peer fromB_ = must(b_.connect(address_));
  Peer fromC_ = must(c_.connect(address_));
  LocalRegion source_ = must(b_.allocate("", 4096));
};

TEST_F(GrantsOnly, namesOpenNothing) {
  for (const char* name : {"target", "nothing of that name"}) {
    const Status refused = fromB_.open(name).status();
    EXPECT_EQ(refused.code(), Code::permissionDenied);
    EXPECT_THAT(refused.message(), HasSubstr("by grants alone"));
    EXPECT_THAT(refused.message(), Not(HasSubstr("\"target\"")));
  }
  const auto remote = must(fromB_.open(must(target_.grant())));
  EXPECT_TRUE(remote.put(source_, 0, 0, 8).ok());
}

TEST_F(GrantsOnly, aGrantForOnePeerIsNotForAnother) {
  const Grant forB = must(target_.grant(onlyFor(must(owner_.peer("b")))));
  const Status refused = fromC_.open(forB).status();
  EXPECT_EQ(refused.code(), Code::permissionDenied);
  EXPECT_THAT(refused.message(), HasSubstr("another peer's"));
  EXPECT_TRUE(fromB_.open(forB).ok());
  const Grant handedOn = must(must(target_.grant()).narrow(onlyFor(must(owner_.peer("c")))));
  EXPECT_TRUE(fromC_.open(handedOn).ok());
  EXPECT_FALSE(fromB_.open(handedOn).ok());
}

TEST_F(GrantsOnly, aGrantIsWorthNothingElsewhere) {
  Node other = must(Node::create(grantsOnly("other")));
  auto namesake = must(other.allocate("target", 4096));
  const Peer fromB = must(b_.connect(must(other.listen("tcp://127.0.0.1:0"))));
  const Status refused = fromB.open(must(target_.grant())).status();
  EXPECT_EQ(refused.code(), Code::permissionDenied);
  EXPECT_THAT(refused.message(), HasSubstr("was not made by other"));
  EXPECT_EQ(namesake.revoke(must(target_.grant())).code(), Code::invalidArgument);
  EXPECT_TRUE(fromB_.open(must(Grant::fromBytes(must(target_.grant()).bytes()))).ok());
}

TEST_F(GrantsOnly, aGrantIsNotForTheNextMemoryOfThatName) {
  const Grant old = must(target_.grant());
  ASSERT_TRUE(target_.revoke().ok());
  auto next = must(owner_.allocate("target", 4096));
  EXPECT_EQ(fromB_.open(old).status().code(), Code::notFound);
  EXPECT_TRUE(fromB_.open(must(next.grant())).ok());
}

TEST_F(GrantsOnly, memoryWithoutANameIsNotGranted) {
  EXPECT_EQ(source_.grant().status().code(), Code::invalidArgument);
}

TEST_F(GrantsOnly, whatIsClosedMakesRoom) {
  const Grant grant = must(target_.grant());
  for (size_t i = 0; i < 3 * GrantedMemory::kMost; ++i) ASSERT_TRUE(fromB_.open(grant).ok()) << i;
}

TEST_F(GrantsOnly, aPeerHasNoMoreThanSoManyOpen) {
  BarePeer bare("bare");
  const auto channel = bare.connect(address_);
  const Grant grant = must(target_.grant());
  for (uint64_t i = 0; i < GrantedMemory::kMost; ++i)
    ASSERT_TRUE(askFor(*channel, grant, "tcp", i).ok()) << i;
  EXPECT_EQ(askFor(*channel, grant, "tcp", 1000).status().code(), Code::exhausted);
  EXPECT_TRUE(askFor(*channel, grant, "tcp", 0).ok()) << "one that it has";
  EXPECT_TRUE(fromB_.open(grant).ok()) << "others are not held up";
}

// It would go on writing.
TEST(GrantThatExpired, disconnectsAPeerThatDoesNotLetGo) {
  NodeOptions options = grantsOnly("owner");
  options.lease = 2s;
  options.heartbeat = 100ms;
  Node owner = must(Node::create(options));
  auto target = must(owner.allocate("target", 4096));
  BarePeer bare("bare");
  const auto channel = bare.connect(must(owner.listen("tcp://127.0.0.1:0")));
  openBriefly([&](Timeout lifetime) {
    GrantOptions brief;
    brief.lifetime = lifetime;
    return askFor(*channel, must(target.grant(brief)), "tcp");
  });
  const Peer peer = must(owner.peer("bare"));
  const auto ended = channel->receive(control::KindSet::all(), 60s);
  EXPECT_EQ(ended.status().code(), Code::disconnected) << ended.status().toString();
  const Deadline deadline(60s);
  while (peer.status().ok() && !deadline.passed()) std::this_thread::yield();
  EXPECT_THAT(peer.status().message(), HasSubstr("did not let go of region \"target\""));
}

// Memory that a transport does not reach: the target copies, on the peer's word.
class StagedGrant : public testing::Test {
 protected:
  static constexpr size_t kSize = 100000;
  void SetUp() override {
    std::string bytes(kSize, '.');
    ASSERT_TRUE(copy(target_->region(), {bytes.data(), kSize, {}}).ok());
  }
  std::string targetBytes() const {
    std::string bytes(kSize, '?');
    EXPECT_TRUE(copy({bytes.data(), kSize, {}}, target_->region()).ok());
    return bytes;
  }
  Status askCopy(uint64_t number, uint64_t offset, uint32_t size) {
    const SlotCopy copy{OpKind::put, "short", 0, "target", number, {{0, offset, size}}};
    return nodes_.toA->channel().call(kCopySlot, copy.encode(), 60s).status();
  }

  FakePair nodes_{{hostOnly()}, {}, 10s, {}, {}, /*grantsOnly=*/true};
  std::shared_ptr<LocalMemory> target_ = FakePair::allocate(*nodes_.a, "target", kSize, kGpu);
  std::shared_ptr<LocalMemory> local_ = FakePair::allocate(*nodes_.b, "local", kSize);
};

TEST_F(StagedGrant, reachesItsPartOfADevicesMemory) {
  const Grant part = must(target_->grant({1000, 5000, {}, Timeout(0), ""}));
  auto remote = must(nodes_.b->open(nodes_.toA, part, {}, kDefaultTimeout));
  EXPECT_EQ(remote->path(), "short (staged at the target)");
  std::memset(local_->host(), 'x', kSize);
  ASSERT_TRUE(remote->run(OpKind::put, *local_, 0, 0, 5000, 30s).ok());
  EXPECT_EQ(targetBytes(),
            std::string(1000, '.') + std::string(5000, 'x') + std::string(kSize - 6000, '.'));
  EXPECT_EQ(remote->run(OpKind::put, *local_, 0, 1, 5000, 30s).code(), Code::outOfRange);
  ASSERT_TRUE(target_->revoke(part, kDefaultTimeout).ok());
  EXPECT_EQ(remote->run(OpKind::put, *local_, 0, 0, 5000, 30s).code(), Code::notFound);
}

TEST_F(StagedGrant, isCheckedWhereTheCopyIsMade) {
  const Grant part = must(target_->grant({1000, 5000, {}, Timeout(0), ""}));
  auto& channel = nodes_.toA->channel();
  auto remote = must(nodes_.b->open(nodes_.toA, part, {}, kDefaultTimeout));
  const uint64_t number = must(askFor(channel, part, "short")).number;
  EXPECT_TRUE(askCopy(number, 4990, 10).ok());
  EXPECT_EQ(askCopy(number, 4991, 10).code(), Code::outOfRange);
  EXPECT_EQ(askCopy(number, UINT64_MAX - 999, 10).code(), Code::outOfRange);
  EXPECT_EQ(askCopy(target_->number(), 0, 10).code(), Code::permissionDenied) << "the whole";
  const Grant reading = must(part.narrow({0, 0, Access::read, Timeout(0), ""}));
  const uint64_t readable = must(askFor(channel, reading, "short")).number;
  EXPECT_EQ(askCopy(readable, 0, 10).code(), Code::permissionDenied);
  const std::string bytes = targetBytes();
  EXPECT_EQ(std::count(bytes.begin(), bytes.end(), '.'), static_cast<ptrdiff_t>(kSize - 10));

  BarePeer another("another");
  const auto elsewhere = another.connect(must(nodes_.a->listen("tcp://127.0.0.1:0")));
  const SlotCopy theirs{OpKind::put, "short", 0, "target", number, {{0, 0, 10}}};
  ASSERT_TRUE(elsewhere->call(kOpenStage, Writer().string("short").bytes(), 60s).ok());
  EXPECT_EQ(elsewhere->call(kCopySlot, theirs.encode(), 60s).status().code(),
            Code::permissionDenied)
      << "what another peer has opened";
}

TEST_F(StagedGrant, registersNothingForLongerThanItIsOpen) {
  auto host = FakePair::allocate(*nodes_.a, "host", kSize);
  const auto live = nodes_.fake("short").a.live;
  const int before = live->load();
  auto remote = must(nodes_.b->open(nodes_.toA, must(host->grant({10, 20, {}, Timeout(0), ""})), {},
                                    kDefaultTimeout));
  EXPECT_EQ(live->load(), before + 1);
  remote.reset();
  const Deadline deadline(60s);
  while (live->load() != before && !deadline.passed()) std::this_thread::yield();
  EXPECT_EQ(live->load(), before);
}

}  // namespace
}  // namespace hmc
