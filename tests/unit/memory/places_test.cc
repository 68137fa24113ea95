#include "memory/places.h"

#include <gtest/gtest.h>

#include <vector>

namespace hmc {
namespace {

constexpr size_t kGiB = size_t{1} << 30;

// Room for the places of a list, aligned as writePlaces() needs it.
struct Room {
  explicit Room(size_t count) : rows(count / 4 + 1) {}
  struct alignas(32) Row {
    Place places[4];
  };
  Place* data() { return rows.front().places; }
  std::vector<Row> rows;
};

TEST(Places, keepEveryOffset) {
  for (size_t size : {size_t{1000}, 4 * kGiB, 5 * kGiB, 80 * kGiB}) {
    const size_t unit = size <= 4 * kGiB ? 1 : size <= 8 * kGiB ? 2 : 32;
    for (size_t count = 1; count < 12; ++count) {
      std::vector<Block> blocks;
      for (size_t i = 0; i < count; ++i)
        blocks.push_back({(size - 1) / unit * unit - i * unit, i * unit, 1});
      Room room(count);
      const EvenBlocks even = writePlaces(blocks, size, count * unit, room.data());
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

TEST(Places, ofLongListsAreTheSame) {
  for (size_t count : {size_t{8192}, size_t{8196}, size_t{16383}}) {
    std::vector<Block> blocks;
    for (size_t i = 0; i < count; ++i) blocks.push_back({3 * i, 2 * (count - i), 2});
    Room room(count);
    const EvenBlocks even = writePlaces(blocks, 3 * count, 2 * count + 2, room.data());
    ASSERT_TRUE(even.places);
    for (size_t i = 0; i < count; ++i) {
      ASSERT_EQ(even.places[i].local, blocks[i].localOffset) << i;
      ASSERT_EQ(even.places[i].remote, blocks[i].remoteOffset) << i;
    }
  }
}

TEST(Places, areNoneWhereAnOffsetIsNoMultiple) {
  for (size_t count = 1; count < 12; ++count) {
    for (size_t odd = 0; odd < count; ++odd) {
      for (const Block& one : {Block{1, 0, 64}, Block{0, 31, 64}}) {
        std::vector<Block> blocks(count, {64, 128, 64});
        Room room(count);
        EXPECT_TRUE(writePlaces(blocks, kGiB, 80 * kGiB, room.data()).places);
        blocks[odd] = one;
        EXPECT_FALSE(writePlaces(blocks, kGiB, 80 * kGiB, room.data()).places);
      }
    }
  }
}

TEST(Places, areNoneWhereABlockIsOfAnotherSizeOrOutside) {
  constexpr uint64_t kFar = UINT64_MAX - 7;
  for (size_t count = 1; count < 12; ++count) {
    for (size_t odd = 0; odd < count; ++odd) {
      std::vector<Block> blocks(count, {936, 1936, 64});
      Room room(count);
      ASSERT_TRUE(writePlaces(blocks, 1000, 2000, room.data()).places);
      for (const Block& one : {Block{937, 0, 64}, Block{0, 1937, 64}, Block{kFar, 0, 64},
                               Block{0, kFar, 64}, Block{0, 0, kFar}}) {
        blocks[odd] = one;
        EXPECT_FALSE(writePlaces(blocks, 1000, 2000, room.data()).places) << count << " " << odd;
      }
      if (count == 1) continue;
      for (size_t size : {size_t{0}, size_t{63}, size_t{65}}) {
        blocks[odd] = {0, 0, size};
        EXPECT_FALSE(writePlaces(blocks, 1000, 2000, room.data()).places) << count << " " << odd;
      }
    }
  }
}

TEST(Places, ofNothingAreNone) {
  Room room(1);
  EXPECT_FALSE(writePlaces({}, 1000, 1000, room.data()).places);
  const Block empty{0, 0, 0};
  EXPECT_FALSE(writePlaces({&empty, 1}, 1000, 1000, room.data()).places);
}

}  // namespace
}  // namespace hmc
