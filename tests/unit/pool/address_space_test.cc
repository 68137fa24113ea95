#include "pool/address_space.h"

#include <gtest/gtest.h>

#include "fakes/must.h"
#include "memory/backends.h"

namespace hmc::pool {
namespace {

Layout layoutOf(uint32_t capacity, uint64_t host, uint64_t device) {
  Layout layout;
  layout.capacity = capacity;
  layout.ranges[0].stride = host;
  layout.ranges[1].stride = device;
  return layout;
}

TEST(AddressSpace, findsWhoseSlotAnAddressIs) {
  auto space =
      test::must(AddressSpace::choose(layoutOf(5, 3 * kSlotUnit, kSlotUnit), hostBackend()));
  for (PoolSpace which : kSpaces) {
    for (uint32_t rank = 0; rank < 5; ++rank) {
      const uint64_t stride = space.layout().ranges[indexOf(which)].stride;
      for (uint64_t offset : {uint64_t{0}, uint64_t{7}, stride - 1}) {
        const auto found = space.find(space.at(which, rank) + offset);
        ASSERT_TRUE(found);
        EXPECT_EQ(found->space, which);
        EXPECT_EQ(found->rank, rank);
        EXPECT_EQ(found->offset, offset);
      }
    }
  }
  EXPECT_FALSE(space.find(space.at(PoolSpace::host, 0) - 1));
  EXPECT_FALSE(space.find(space.at(PoolSpace::host, 5)));
  EXPECT_FALSE(space.find(&space));
  EXPECT_FALSE(space.find(nullptr));
}

TEST(AddressSpace, withoutDeviceSlotsKnowsNone) {
  auto space = test::must(AddressSpace::choose(layoutOf(2, kSlotUnit, 0), hostBackend()));
  EXPECT_FALSE(space.find(nullptr));
  EXPECT_EQ(space.layout().ranges[1].base, 0u);
}

// Where the next stack or library of another member would lie, that member could not join.
TEST(AddressSpace, liesWhereTheKernelPutsNothingByItself) {
  auto space = test::must(AddressSpace::choose(layoutOf(2, kSlotUnit, 0), hostBackend()));
  EXPECT_LE(space.layout().ranges[0].base + 2 * kSlotUnit, uint64_t{0x7ec0} << 32);
}

TEST(AddressSpace, canBeHadOnceInAProcess) {
  auto space = test::must(AddressSpace::choose(layoutOf(2, kSlotUnit, 0), hostBackend()));
  const auto twice = AddressSpace::reserve(space.layout(), hostBackend());
  EXPECT_EQ(twice.status().code(), Code::alreadyExists);
  EXPECT_NE(twice.status().message().find("host slots"), std::string::npos)
      << twice.status().message();
  const Layout layout = space.layout();
  { auto gone = std::move(space); }
  EXPECT_TRUE(AddressSpace::reserve(layout, hostBackend()).ok());
}

TEST(AddressSpace, tooLargeIsRefusedWithTheLimit) {
  const auto refused =
      AddressSpace::choose(layoutOf(65535, uint64_t{1} << 40, 0), hostBackend()).status();
  EXPECT_EQ(refused.code(), Code::exhausted);
  EXPECT_NE(refused.message().find("65535"), std::string::npos) << refused.message();
}

TEST(Layout, travelsAndIsCheckedOnArrival) {
  Layout layout = layoutOf(9, kSlotUnit, 2 * kSlotUnit);
  layout.ranges[0].base = uint64_t{0x30} << 40;
  layout.ranges[1].base = uint64_t{0x31} << 40;
  EXPECT_EQ(test::must(Layout::decode(layout.encode())), layout);
  for (size_t length = 0; length < layout.encode().size(); ++length)
    EXPECT_FALSE(Layout::decode(layout.encode().substr(0, length)).ok());
  auto refused = [](Layout bad) { return !Layout::decode(bad.encode()).ok(); };
  Layout bad = layout;
  bad.capacity = 0;
  EXPECT_TRUE(refused(bad));
  bad = layout;
  bad.ranges[0].base += 1;
  EXPECT_TRUE(refused(bad));
  bad = layout;
  bad.ranges[0].base = uint64_t{1} << 47;
  EXPECT_TRUE(refused(bad));
  bad = layout;
  bad.ranges[1].stride = uint64_t{1} << 44;  // nine of them pass the end
  EXPECT_TRUE(refused(bad));
}

}  // namespace
}  // namespace hmc::pool
