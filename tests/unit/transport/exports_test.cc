#include "transport/exports.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <latch>
#include <string>
#include <thread>

namespace hmc {

namespace {

Region regionOf(std::string& bytes) {
  return {bytes.data(), bytes.size(), Device{}};
}

}  // namespace

TEST(Exports, usesWhatIsExportedWithinItsBounds) {
  std::string bytes(10, '.');
  Exports exports;
  const uint64_t id = exports.add(regionOf(bytes), Access::readWrite);
  auto fill = [](const Region& piece) {
    std::memset(piece.ptr, 'x', piece.size);
    return Status();
  };
  EXPECT_TRUE(exports.use(id, OpKind::put, 8, 2, fill).ok());
  EXPECT_EQ(bytes, "........xx");
  EXPECT_EQ(exports.use(id, OpKind::put, 8, 3, fill).code(), Code::outOfRange);
  EXPECT_EQ(exports.use(id, OpKind::get, ~uint64_t{0}, 2, fill).code(), Code::outOfRange);
  EXPECT_EQ(exports.use(id + 1, OpKind::put, 0, 1, fill).code(), Code::notFound);
  EXPECT_EQ(bytes, "........xx");
}

TEST(Exports, refusesPutsIntoReadOnlyMemory) {
  std::string bytes(10, '.');
  Exports exports;
  const uint64_t id = exports.add(regionOf(bytes), Access::read);
  auto nothing = [](const Region&) { return Status(); };
  EXPECT_EQ(exports.use(id, OpKind::put, 0, 1, nothing).code(), Code::permissionDenied);
  EXPECT_TRUE(exports.use(id, OpKind::get, 0, 1, nothing).ok());
}

TEST(Exports, cannotBeHeldOnceRemoved) {
  std::string bytes(10, '.');
  Exports exports;
  const uint64_t id = exports.add(regionOf(bytes), Access::readWrite);
  const auto found = exports.find(id);
  ASSERT_TRUE(found);
  EXPECT_TRUE(found->hold());
  exports.remove(id);
  EXPECT_FALSE(found->hold());
  EXPECT_FALSE(exports.find(id));
  exports.remove(id);
}

TEST(Exports, removalWaitsForWhoeverHoldsIt) {
  std::string bytes(10, '.');
  Exports exports;
  const uint64_t id = exports.add(regionOf(bytes), Access::readWrite);
  std::latch held(1);
  std::atomic<bool> moved{false};
  std::jthread mover([&] {
    (void)exports.use(id, OpKind::put, 0, 10, [&](const Region& piece) {
      held.count_down();
      // Gives remove() every chance to return too early.
      for (int i = 0; i < 1000; ++i) std::this_thread::yield();
      std::memset(piece.ptr, 'x', piece.size);
      moved = true;
      return Status();
    });
  });
  held.wait();
  exports.remove(id);
  EXPECT_TRUE(moved);
}

}  // namespace hmc
