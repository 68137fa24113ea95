#include "memory/places.h"

#include <gtest/gtest.h>

#include <vector>

namespace hmc {
namespace {

constexpr size_t kGiB = size_t{1} << 30;

// Room for the places of a list, aligned as writePlaces() needs it.
struct Room {
  explicit Room(size_t count) : rows(count / 8 + 1) {}
  struct alignas(64) Row {
    Place places[8];
  };
  Place* data() { return rows.front().places; }
  std::vector<Row> rows;
};

// By how many blocks are handled at once.
class Places : public testing::TestWithParam<size_t> {
 protected:
  void SetUp() override {
    if (GetParam() > mostPlacesAtOnce()) GTEST_SKIP() << "this processor cannot";
  }
  static EvenBlocks write(std::span<const Block> blocks, uint64_t localSize, uint64_t remoteSize,
                          Room& room) {
    return writePlaces(blocks, localSize, remoteSize, room.data(), GetParam());
  }
  static constexpr size_t kCounts = 20;  // two of the widest rows and some
};
INSTANTIATE_TEST_SUITE_P(AtOnce, Places, testing::Values(1, 4, 8),
                         testing::PrintToStringParamName());

TEST_P(Places, keepEveryOffset) {
  for (size_t size : {size_t{1000}, 4 * kGiB, 5 * kGiB, 80 * kGiB}) {
    const size_t unit = size <= 4 * kGiB ? 1 : size <= 8 * kGiB ? 2 : 32;
    for (size_t count = 1; count < kCounts; ++count) {
      std::vector<Block> blocks;
      for (size_t i = 0; i < count; ++i)
        blocks.push_back({(size - 1) / unit * unit - i * unit, i * unit, 1});
      Room room(count);
      const EvenBlocks even = write(blocks, size, count * unit, room);
      ASSERT_EQ(even.places, room.data());
      EXPECT_EQ(even.each, 1U);
      EXPECT_EQ(size_t{1} << even.shift, unit);
      for (size_t i = 0; i < count; ++i) {
        const auto [local, remote] = even.places[i];
        EXPECT_EQ(size_t{local} << even.shift, blocks[i].localOffset) << size << " " << i;
        EXPECT_EQ(size_t{remote} << even.shift, blocks[i].remoteOffset) << size << " " << i;
      }
    }
  }
}

TEST_P(Places, ofLongListsAreTheSame) {
  for (size_t count : {size_t{8192}, size_t{8196}, size_t{16383}}) {
    std::vector<Block> blocks;
    for (size_t i = 0; i < count; ++i) blocks.push_back({3 * i, 2 * (count - i), 2});
    Room room(count);
    const EvenBlocks even = write(blocks, 3 * count, 2 * count + 2, room);
    ASSERT_TRUE(even.places);
    for (size_t i = 0; i < count; ++i) {
      ASSERT_EQ(even.places[i].local, blocks[i].localOffset) << i;
      ASSERT_EQ(even.places[i].remote, blocks[i].remoteOffset) << i;
    }
  }
}

TEST_P(Places, areNoneWhereAnOffsetIsNoMultiple) {
  for (size_t count = 1; count < kCounts; ++count) {
    for (size_t odd = 0; odd < count; ++odd) {
      for (const Block& one : {Block{1, 0, 64}, Block{0, 31, 64}}) {
        std::vector<Block> blocks(count, {64, 128, 64});
        Room room(count);
        EXPECT_TRUE(write(blocks, kGiB, 80 * kGiB, room).places);
        blocks[odd] = one;
        EXPECT_FALSE(write(blocks, kGiB, 80 * kGiB, room).places);
      }
    }
  }
}

TEST_P(Places, areNoneWhereABlockIsOfAnotherSizeOrOutside) {
  constexpr uint64_t kFar = UINT64_MAX - 7;
  for (size_t count = 1; count < kCounts; ++count) {
    for (size_t odd = 0; odd < count; ++odd) {
      std::vector<Block> blocks(count, {936, 1936, 64});
      Room room(count);
      ASSERT_TRUE(write(blocks, 1000, 2000, room).places);
      for (const Block& one : {Block{937, 0, 64}, Block{0, 1937, 64}, Block{kFar, 0, 64},
                               Block{0, kFar, 64}, Block{0, 0, kFar}}) {
        blocks[odd] = one;
        EXPECT_FALSE(write(blocks, 1000, 2000, room).places) << count << " " << odd;
      }
      if (count == 1) continue;
      for (size_t size : {size_t{0}, size_t{63}, size_t{65}}) {
        blocks[odd] = {0, 0, size};
        EXPECT_FALSE(write(blocks, 1000, 2000, room).places) << count << " " << odd;
      }
    }
  }
}

TEST_P(Places, ofNothingAreNone) {
  Room room(1);
  EXPECT_FALSE(write({}, 1000, 1000, room).places);
  const Block empty{0, 0, 0};
  EXPECT_FALSE(write({&empty, 1}, 1000, 1000, room).places);
}

}  // namespace
}  // namespace hmc
