#include "transport/ipc/service.h"

#include <sys/mman.h>

#include "base/random.h"
#include "unit/transport/ipc_fixture.h"

// The target side of a ring, against an origin that writes there what it likes.
namespace hmc::ipc {
namespace {

constexpr size_t kServedSize = 4096;

class IpcService : public testing::Test {
 protected:
  void SetUp() override {
    std::memset(memory_, '.', sizeof(memory_));
    readWrite_ = exports_.add(hostRegion(memory_ + kServedSize, kServedSize), Access::readWrite);
    read_ = exports_.add(hostRegion(memory_ + kServedSize, kServedSize), Access::read);
    service_.addLink(link_, lease_);
    service_.start();
    theirs_.emplace(must(SharedBlock<ServicePage>::attach(must(page_.share()))));
  }

  // A second mapping of a ring, as the other process has it.
  static SharedBlock<Ring> seen(const SharedBlock<Ring>& ring) {
    return must(SharedBlock<Ring>::attach(must(ring.share())));
  }
  Status request(const SharedBlock<Ring>& ring, const std::string& link) {
    return service_.acceptRing(link, seen(ring), *theirs_);
  }
  // Posts one piece and answers what became of it.
  Code post(Ring& ring, uint32_t slotIndex, uint32_t kind, uint64_t region, uint64_t offset,
            uint32_t size) {
    RingSlot& slot = ring.slots[slotIndex];
    slot.kind.store(kind);
    slot.region.store(region);
    slot.offset.store(offset);
    slot.size.store(size);
    tsanRelease();
    slot.state.store(RingSlot::posted);
    (*theirs_)->serve.ring();
    Doorbell& doorbell = page_->progress;
    Deadline deadline(kPatience);
    for (;;) {
      uint32_t seen = doorbell.count.load();
      if (slot.state.load() == RingSlot::done) break;
      if (deadline.passed()) return Code::deadlineExceeded;
      doorbell.sleep(seen, deadline);
    }
    tsanAcquire();
    slot.state.store(RingSlot::free);
    return static_cast<Code>(slot.outcome.load());
  }
  bool untouched() const {
    for (char byte : memory_) {
      if (byte != '.') return false;
    }
    return true;
  }

  char memory_[3 * kServedSize];  // what is shared lies in the middle
  const SharedBlock<ServicePage> page_ = must(SharedBlock<ServicePage>::create());
  Exports exports_;
  Service service_{*page_, exports_};
  std::shared_ptr<Lease> lease_ = std::make_shared<Lease>(std::chrono::minutes(10));
  const std::string link_ = randomBytes(kNonceSize);
  uint64_t readWrite_ = 0;
  uint64_t read_ = 0;
  std::optional<SharedBlock<ServicePage>> theirs_;
};

constexpr uint32_t kPut = 0;
constexpr uint32_t kGet = 1;

TEST_F(IpcService, appliesWhatIsAllowed) {
  auto ring = must(SharedBlock<Ring>::create());
  ASSERT_TRUE(request(ring, link_).ok());
  std::memset(ring->data[5], 'x', kServedSize);
  EXPECT_EQ(post(*ring, 5, kPut, readWrite_, 10, 20), Code::ok);
  EXPECT_EQ(std::string(memory_ + kServedSize + 9, 22), "." + std::string(20, 'x') + ".");
  EXPECT_EQ(post(*ring, 6, kGet, read_, 9, 2), Code::ok);
  EXPECT_EQ(std::string(ring->data[6], 2), ".x");
}

TEST_F(IpcService, refusesWhateverPassesTheEnd) {
  auto ring = must(SharedBlock<Ring>::create());
  ASSERT_TRUE(request(ring, link_).ok());
  std::memset(ring->data[0], 'x', kSlotBytes);
  for (uint32_t kind : {kPut, kGet}) {
    EXPECT_EQ(post(*ring, 0, kind, readWrite_, kServedSize, 1), Code::outOfRange);
    EXPECT_EQ(post(*ring, 0, kind, readWrite_, kServedSize - 1, 2), Code::outOfRange);
    EXPECT_EQ(post(*ring, 0, kind, readWrite_, ~uint64_t{0}, 1), Code::outOfRange);
    EXPECT_EQ(post(*ring, 0, kind, readWrite_, ~uint64_t{7}, 16), Code::outOfRange);
    EXPECT_EQ(post(*ring, 0, kind, readWrite_, 0, ~uint32_t{0}), Code::outOfRange);
    EXPECT_EQ(post(*ring, 0, kind, readWrite_, 0, kSlotBytes + 1), Code::outOfRange);
  }
  EXPECT_TRUE(untouched());
}

TEST_F(IpcService, aPieceLargerThanASlotIsRefusedEvenWhereItWouldFit) {
  std::vector<char> large(4 * kSlotBytes);
  uint64_t id = exports_.add(hostRegion(large.data(), large.size()), Access::readWrite);
  auto ring = must(SharedBlock<Ring>::create());
  ASSERT_TRUE(request(ring, link_).ok());
  EXPECT_EQ(post(*ring, kSlots - 1, kGet, id, 0, 2 * kSlotBytes), Code::outOfRange);
  EXPECT_EQ(post(*ring, kSlots - 1, kGet, id, 0, kSlotBytes), Code::ok);
  exports_.remove(id);
}

TEST_F(IpcService, refusesUnknownRegionsKindsAndWritesToReadOnlyMemory) {
  auto ring = must(SharedBlock<Ring>::create());
  ASSERT_TRUE(request(ring, link_).ok());
  std::memset(ring->data[0], 'x', kServedSize);
  EXPECT_EQ(post(*ring, 0, kPut, readWrite_ + 100, 0, 1), Code::notFound);
  EXPECT_EQ(post(*ring, 0, kPut, 0, 0, 1), Code::notFound);
  EXPECT_EQ(post(*ring, 0, 7, readWrite_, 0, 1), Code::invalidArgument);
  EXPECT_EQ(post(*ring, 0, kPut, read_, 0, 1), Code::permissionDenied);
  exports_.remove(readWrite_);
  EXPECT_EQ(post(*ring, 0, kPut, readWrite_, 0, 1), Code::notFound);
  EXPECT_TRUE(untouched());
}

TEST_F(IpcService, appliesNothingOnceTheLeaseIsOver) {
  auto ring = must(SharedBlock<Ring>::create());
  ASSERT_TRUE(request(ring, link_).ok());
  std::memset(ring->data[0], 'x', kServedSize);
  lease_->revoke();
  EXPECT_EQ(post(*ring, 0, kPut, readWrite_, 0, 1), Code::disconnected);
  EXPECT_TRUE(untouched());
}

TEST_F(IpcService, refusesRingsOfLinksThatItDoesNotHave) {
  auto ring = must(SharedBlock<Ring>::create());
  EXPECT_EQ(request(ring, randomBytes(kNonceSize)).code(), Code::disconnected);
}

TEST_F(IpcService, takesOnlySoManyRingsOfOneLink) {
  auto ring = must(SharedBlock<Ring>::create());
  Status status;
  for (int i = 0; i < 100 && status.ok(); ++i) status = request(ring, link_);
  EXPECT_EQ(status.code(), Code::exhausted) << status.toString();
}

TEST_F(IpcService, tellsItsPeersWhenTheLinkEnds) {
  auto ring = must(SharedBlock<Ring>::create());
  ASSERT_TRUE(request(ring, link_).ok());
  service_.removeLink(link_);
  EXPECT_EQ(ring->closedByTarget.load(), 1u);
  auto again = must(SharedBlock<Ring>::create());
  EXPECT_EQ(request(again, link_).code(), Code::disconnected);
}

TEST_F(IpcService, doesNotMapARingThatIsTooSmallOrCanShrink) {
  Fd small(memfd_create("small", MFD_CLOEXEC));
  ASSERT_EQ(ftruncate(small.get(), sizeof(Ring)), 0);  // large enough, but not sealed
  EXPECT_FALSE(SharedBlock<Ring>::attach(small).ok());
  EXPECT_FALSE(SharedBlock<Ring>::attach(must(page_.share())).ok()) << "too small";
}

}  // namespace
}  // namespace hmc::ipc
