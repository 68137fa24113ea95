#include "transfer/pieces.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "fakes/fake_accelerator.h"

namespace hmc {
namespace {

using testing::HasSubstr;

constexpr uint64_t kFar = UINT64_MAX - 7;

// The same for one block, for a list that it is in the middle of, and for a Strided of one piece.
Status check(const Block& block, uint64_t localSize, uint64_t remoteSize, const char* what) {
  const std::vector<Block> list{{}, {}, block, {}};
  Status listed = Pieces(list).check(localSize, remoteSize, what);
  const auto& [local, remote, size] = block;
  Status single = Pieces(Strided{local, 0, remote, 0, 1, size}).check(localSize, remoteSize, what);
  EXPECT_EQ(listed.toString(), single.toString());
  return listed;
}

TEST(Pieces, acceptWhatEndsExactlyAtTheEnd) {
  EXPECT_TRUE(check({100, 0, 28}, 128, 28, "put").ok());
  EXPECT_TRUE(check({128, 28, 0}, 128, 28, "put").ok());
}

TEST(Pieces, nameTheSideThatIsPassed) {
  Status local = check({101, 0, 28}, 128, 28, "put");
  EXPECT_EQ(local.code(), Code::outOfRange);
  EXPECT_THAT(local.message(), HasSubstr("put of 28 bytes at local offset 101"));
  EXPECT_THAT(local.message(), HasSubstr("would pass the end of 128 bytes"));
  Status remote = check({0, 1, 28}, 128, 28, "get");
  EXPECT_THAT(remote.message(), HasSubstr("get of 28 bytes at remote offset 1"));
}

TEST(Pieces, doNotWrapAround) {
  constexpr uint64_t kHalf = uint64_t{1} << 63;
  for (const Block& block :
       {Block{kFar, 0, 16}, Block{0, kFar, 16}, Block{0, 0, UINT64_MAX}, Block{kHalf, 0, kHalf},
        Block{0, kHalf, kHalf}, Block{kHalf, 0, 1}, Block{0, kHalf - 1, kHalf - 1}}) {
    EXPECT_EQ(check(block, 128, 128, "put").code(), Code::outOfRange);
  }
  Pieces far(Strided{0, UINT64_MAX / 2, 0, 1, 4, 1});
  EXPECT_EQ(far.check(128, 128, "put").code(), Code::outOfRange);
}

TEST(Pieces, areCheckedUpToTheLastOfTheirStride) {
  const Strided strided{0, 32, 0, 8, 4, 8};
  EXPECT_TRUE(Pieces(strided).check(104, 32, "put").ok());
  EXPECT_EQ(Pieces(strided).check(103, 32, "put").code(), Code::outOfRange);
  EXPECT_EQ(Pieces(strided).check(104, 31, "put").code(), Code::outOfRange);
  EXPECT_TRUE(Pieces(Strided{0, 9, 0, 9, 0, 9}).check(0, 0, "put").ok());
}

TEST(Pieces, ofALongListAreCheckedPartByPart) {
  std::vector<Block> list(Pieces::kPart + Pieces::kLaterPart + 1, {0, 0, 2});
  list[Pieces::kPart].size = 3;
  Pieces pieces(list);
  EXPECT_TRUE(pieces.check(2, 2, "put").ok());
  EXPECT_EQ(pieces.checked().end(), Pieces::kPart);
  EXPECT_EQ(pieces.checked().bytes, 2 * Pieces::kPart);
  EXPECT_EQ(pieces.typicalSize(), 2U);
  EXPECT_EQ(pieces.checkPart().code(), Code::outOfRange);
  Pieces again(list);
  EXPECT_TRUE(again.check(3, 3, "put").ok());
  EXPECT_TRUE(again.checkRest().ok());
  EXPECT_EQ(again.checked().end(), list.size());
  EXPECT_EQ(again.checked().count, 1U);
}

// Wherever the one bad number stands, among blocks of one size and of several.
TEST(Pieces, findTheOneThatDoesNotFit) {
  constexpr size_t kHere = 1000;
  constexpr size_t kThere = 2000;
  for (size_t count : {size_t{1}, size_t{4}, size_t{7}, size_t{23}}) {
    for (size_t uneven : {size_t{0}, size_t{1}}) {
      std::vector<Block> list;
      for (size_t i = 0; i < count; ++i) list.push_back({990 - i, 1990 - i, 10 - uneven * (i % 3)});
      ASSERT_TRUE(Pieces(list).check(kHere, kThere, "put").ok());
      for (size_t bad = 0; bad < count; ++bad) {
        for (const Block& worse :
             {Block{kHere, 0, 1}, Block{0, kThere, 1}, Block{0, 0, kHere + 1}, Block{991, 0, 10},
              Block{0, 1991, 10}, Block{kFar, 0, 10}, Block{0, kFar, 10}, Block{0, 0, kFar}}) {
          auto changed = list;
          changed[bad] = worse;
          EXPECT_EQ(Pieces(changed).check(kHere, kThere, "put").code(), Code::outOfRange)
              << count << " " << bad;
        }
      }
    }
  }
}

TEST(Pieces, areSummedUpWhateverTheirSizes) {
  for (size_t count = 0; count < 20; ++count) {
    for (size_t odd = 0; odd <= count; ++odd) {
      std::vector<Block> list(count, {0, 0, 10});
      if (odd < count) list[odd].size = 900;
      Pieces pieces(list);
      ASSERT_TRUE(pieces.check(1000, 1000, "put").ok());
      EXPECT_EQ(pieces.checked().bytes, 10 * count + (odd < count ? 890 : 0))
          << count << " " << odd;
    }
  }
}

// Lists that wait for the next user stay pinned for it, so it is never destroyed.
FakeAccelerator& device() {
  static auto* fake = new FakeAccelerator;
  return *fake;
}

TEST(Pieces, ofOneSizeAreWrittenDownForADevice) {
  std::vector<Block> list(Pieces::kPart + 200, {8, 16, 32});
  list.back().localOffset = 9;
  Pieces pieces(list);
  pieces.writeDownFor(device());
  ASSERT_TRUE(pieces.check(64, 64, "put").ok());
  EXPECT_EQ(pieces.checked().bytes, 32 * Pieces::kPart);
  ASSERT_TRUE(pieces.even().memory);
  const EvenBlocks first = pieces.even().blocks;
  EXPECT_EQ(first.each, 32U);
  EXPECT_EQ(first.places[Pieces::kPart - 1].remote, 16U);
  // A device may still read the first part.
  const EvenList kept = std::move(pieces.even());
  ASSERT_TRUE(pieces.checkPart().ok());
  EXPECT_EQ(pieces.checked().bytes, 32 * 200);
  ASSERT_TRUE(pieces.even().memory);
  EXPECT_NE(pieces.even().blocks.places, first.places);
  EXPECT_EQ(pieces.even().blocks.places[199].local, 9U);
  EXPECT_GE(device().pinned(), 2U);
}

TEST(Pieces, areNotWrittenDownWhereTheyDiffer) {
  std::vector<Block> list(200, {0, 0, 32});
  list[77].size = 31;
  Pieces pieces(list);
  pieces.writeDownFor(device());
  ASSERT_TRUE(pieces.check(64, 64, "put").ok());
  EXPECT_EQ(pieces.checked().bytes, 32 * 200 - 1);
  EXPECT_FALSE(pieces.even().memory);
  list[78].localOffset = 64;
  EXPECT_EQ(Pieces(list).check(64, 64, "put").code(), Code::outOfRange);
}

TEST(Pieces, outliveTheListThatTheyKeep) {
  std::vector<Block> list{{1, 2, 3}, {4, 5, 6}};
  Pieces pieces(list);
  pieces.keep();
  list.assign(2, {});
  EXPECT_EQ(pieces.at(1).remoteOffset, 5U);
}

std::vector<std::array<uint64_t, 3>> visit(const Pieces& pieces, uint64_t largest) {
  std::vector<std::array<uint64_t, 3>> seen;
  for (Cursor cursor(pieces); !cursor.atEnd(); cursor.advance(cursor.left(largest)))
    seen.push_back({cursor.local(), cursor.remote(), cursor.left(largest)});
  return seen;
}

TEST(Cursor, visitsEveryPieceInOrderAndCutsLongOnes) {
  using Seen = std::vector<std::array<uint64_t, 3>>;
  const std::vector<Block> list{{10, 20, 5}, {0, 0, 0}, {7, 8, 1}, {0, 0, 0}};
  EXPECT_EQ(visit(Pieces(list), 4), (Seen{{10, 20, 4}, {14, 24, 1}, {7, 8, 1}}));
  EXPECT_EQ(visit(Pieces(Strided{0, 100, 0, 10, 2, 3}), 4), (Seen{{0, 0, 3}, {100, 10, 3}}));
}

TEST(Cursor, isAtTheEndOfNothing) {
  EXPECT_TRUE(Cursor(Pieces(std::span<const Block>())).atEnd());
  EXPECT_TRUE(Cursor(Pieces(Strided{0, 1, 0, 1, SIZE_MAX, 0})).atEnd());
}

}  // namespace
}  // namespace hmc
