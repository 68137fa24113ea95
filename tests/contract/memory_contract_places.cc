#include "contract/memory_contract.h"

// attach() at a place in a reservation.
namespace hmc {

class MemoryContractPlaces : public MemoryContract {
 protected:
  void SetUp() override {
    MemoryContract::SetUp();
    if (HasFatalFailure()) return;
    auto made = backend->reserve(kSize);
    if (made.status().code() == Code::unsupported) GTEST_SKIP() << made.status().message();
    ASSERT_TRUE(made.ok()) << made.status().toString();
    reservation = *std::move(made);
    shared = allocate(kMemory, lastDevice());
    write(shared, pattern(kMemory, 3));
    auto described = backend->share(shared, ShareFor::process);
    ASSERT_TRUE(described.ok()) << described.status().toString();
    share = std::make_unique<Share>(*std::move(described));
  }
  void TearDown() override {
    if (shared.ptr) release(shared);
  }

  // The nth place of the reservation.
  char* place(size_t nth) const { return reservation->region.at(nth * reservation->alignment); }
  Region attachAt(void* at) {
    auto attached = backend->attach(*share, at);
    EXPECT_TRUE(attached.ok()) << attached.status().toString();
    return attached.ok() ? *attached : Region{};
  }
  Code refusal(void* at) { return backend->attach(*share, at).status().code(); }

  static constexpr size_t kMemory = 100000;
  static constexpr size_t kSize = size_t{64} << 20;
  std::unique_ptr<Reservation> reservation;
  Region shared;
  std::unique_ptr<Share> share;
};

TEST_P(MemoryContractPlaces, areAsLargeAndAlignedAsTheySay) {
  EXPECT_GE(reservation->region.size, kSize);
  EXPECT_EQ(reservation->region.device.kind, backend->facts().kind);
  EXPECT_GT(reservation->alignment, 0u);
  EXPECT_FALSE(backend->reserve(0).ok());
  EXPECT_FALSE(backend->reserve(~size_t{0}).ok());
}

TEST_P(MemoryContractPlaces, holdMemoryWhereItWasAskedFor) {
  Region first = attachAt(place(0));
  Region third = attachAt(place(2));
  EXPECT_EQ(first.ptr, place(0));
  EXPECT_EQ(third.ptr, place(2));
  EXPECT_EQ(third.size, kMemory);
  EXPECT_EQ(third.device, shared.device);
  EXPECT_EQ(read(third), pattern(kMemory, 3));
  write(third.slice(kMemory - 1, 1), "!");
  EXPECT_EQ(read(first.slice(kMemory - 1, 1)), "!");
  EXPECT_TRUE(backend->detach(first).ok());
  EXPECT_EQ(read(third.slice(0, 1)), pattern(1, 3));
  EXPECT_TRUE(backend->detach(third).ok());
}

TEST_P(MemoryContractPlaces, areFreeAgainAfterDetach) {
  for (int round = 0; round < 3; ++round) {
    Region region = attachAt(place(1));
    EXPECT_EQ(region.ptr, place(1));
    EXPECT_EQ(read(region), pattern(kMemory, 3));
    EXPECT_TRUE(backend->detach(region).ok());
    EXPECT_EQ(backend->detach(region).code(), Code::invalidArgument);
  }
}

// What detach() leaves behind must not be handed out to anybody.
TEST_P(MemoryContractPlaces, stayReservedAfterDetach) {
  EXPECT_TRUE(backend->detach(attachAt(place(1))).ok());
  std::vector<std::unique_ptr<Reservation>> others;
  for (int i = 0; i < 20; ++i) {
    others.push_back(std::move(backend->reserve(reservation->alignment)).value());
    const char* at = others.back()->region.at(0);
    EXPECT_TRUE(at < place(0) || at >= reservation->region.at(reservation->region.size));
  }
}

TEST_P(MemoryContractPlaces, beginAtAnAddressThatWasAskedFor) {
  void* const there = reservation->region.ptr;
  const Status taken = backend->reserve(kSize, there).status();
  EXPECT_EQ(taken.code(), Code::alreadyExists) << taken.message();
  reservation.reset();
  auto again = backend->reserve(kSize, there);
  ASSERT_TRUE(again.ok()) << again.status().toString();
  EXPECT_EQ((*again)->region.ptr, there);
  reservation = *std::move(again);
  EXPECT_EQ(read(attachAt(place(1))), pattern(kMemory, 3));
  EXPECT_TRUE(backend->detach({place(1), kMemory, shared.device}).ok());
}

TEST_P(MemoryContractPlaces, beginWhereTheyWereAskedForHoweverFewTheyAre) {
  char* const there = place(0);
  const size_t few = reservation->alignment;
  reservation.reset();
  auto small = backend->reserve(few, there);
  ASSERT_TRUE(small.ok()) << small.status().toString();
  EXPECT_EQ((*small)->region.ptr, there);
  EXPECT_EQ((*small)->region.size, few);
}

TEST_P(MemoryContractPlaces, areRefusedOutsideAndBetweenAndTwice) {
  int local = 0;
  EXPECT_EQ(refusal(&local), Code::invalidArgument);
  EXPECT_EQ(refusal(shared.ptr), Code::invalidArgument);
  EXPECT_EQ(refusal(place(0) + 1), Code::invalidArgument);
  EXPECT_NE(refusal(reservation->region.at(reservation->region.size)), Code::ok);
  Region region = attachAt(place(1));
  EXPECT_EQ(refusal(place(1)), Code::alreadyExists);
  EXPECT_EQ(read(region), pattern(kMemory, 3));
  EXPECT_TRUE(backend->detach(region).ok());
}

TEST_P(MemoryContractPlaces, areRefusedWhereMemoryWouldPassTheEnd) {
  auto small = backend->reserve(1);
  ASSERT_TRUE(small.ok());
  Region large = allocate((*small)->region.size + 1);
  auto described = backend->share(large, ShareFor::process);
  ASSERT_TRUE(described.ok());
  EXPECT_EQ(backend->attach(*described, (*small)->region.ptr).status().code(), Code::outOfRange);
  release(large);
}

TEST_P(MemoryContractPlaces, keepWhatIsAttachedWhenTheReservationGoes) {
  Region region = attachAt(place(3));
  reservation.reset();
  EXPECT_EQ(read(region), pattern(kMemory, 3));
  EXPECT_TRUE(backend->detach(region).ok());
}

INSTANTIATE_TEST_SUITE_P(All, MemoryContractPlaces, testing::ValuesIn(memoryContractCases()),
                         memoryContractName);

}  // namespace hmc
