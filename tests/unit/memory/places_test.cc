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

// What a device reads there.
Block blockAt(const EvenBlocks& even, size_t i) {
  auto block = [&](const auto& place) {
    return Block{size_t{place.local} << even.shift, size_t{place.remote} << even.shift, even.each};
  };
  return even.narrow ? block(static_cast<const NarrowPlace*>(even.places)[i])
                     : block(static_cast<const Place*>(even.places)[i]);
}

void expectPlaces(const EvenBlocks& even, const std::vector<Block>& blocks) {
  ASSERT_TRUE(even.places);
  for (size_t i = 0; i < blocks.size(); ++i) {
    const auto [local, remote, size] = blockAt(even, i);
    ASSERT_EQ(local, blocks[i].localOffset) << i;
    ASSERT_EQ(remote, blocks[i].remoteOffset) << i;
    ASSERT_EQ(size, blocks[i].size) << i;
  }
}

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
      expectPlaces(even, blocks);
    }
  }
}

TEST(Places, ofLongListsAreTheSame) {
  for (size_t count : {size_t{8192}, size_t{8196}, size_t{16383}}) {
    std::vector<Block> blocks;
    for (size_t i = 0; i < count; ++i) blocks.push_back({3 * i, 2 * (count - i), 2});
    Room room(count);
    const EvenBlocks even = writePlaces(blocks, 3 * count, 2 * count + 2, room.data());
    expectPlaces(even, blocks);
  }
}

TEST(Places, areNarrowWhereTheSidesHoldFewBlocks) {
  constexpr size_t kSize = 16384;
  constexpr size_t kMost = 65536;  // blocks
  for (size_t count : {size_t{1}, size_t{7}, size_t{8}, size_t{9}, size_t{8192}, size_t{8211}}) {
    for (size_t inSide : {count, kMost, kMost + 1}) {
      std::vector<Block> blocks;
      for (size_t i = 0; i < count; ++i)
        blocks.push_back({i * kSize, (inSide - 1 - i) * kSize, kSize});
      Room room(count);
      const EvenBlocks even = writePlaces(blocks, inSide * kSize, inSide * kSize, room.data());
      EXPECT_EQ(even.narrow, inSide <= kMost) << count << " " << inSide;
      expectPlaces(even, blocks);
    }
  }
}

TEST(Places, areWideWhereOneOffsetIsNoMultipleOfTheSize) {
  for (size_t odd = 0; odd < 20; ++odd) {
    std::vector<Block> blocks(20, {128, 256, 64});
    blocks[odd].remoteOffset = 257;
    Room room(blocks.size());
    const EvenBlocks even = writePlaces(blocks, 1000, 2000, room.data());
    EXPECT_FALSE(even.narrow);
    expectPlaces(even, blocks);
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
