#include "transfer/shape.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hmc {
namespace {

using testing::HasSubstr;

Shape block(uint64_t local, uint64_t remote, uint64_t length) {
  return {local, 0, remote, 0, 1, length};
}

TEST(Bounds, acceptsWhatEndsExactlyAtTheEnd) {
  EXPECT_TRUE(checkBounds(block(100, 0, 28), 128, 28, "put").ok());
  EXPECT_TRUE(checkBounds(block(128, 28, 0), 128, 28, "put").ok());
}

TEST(Bounds, namesTheSideThatIsPassed) {
  Status local = checkBounds(block(101, 0, 28), 128, 28, "put");
  EXPECT_EQ(local.code(), Code::outOfRange);
  EXPECT_THAT(local.message(), HasSubstr("put of 28 bytes at local offset 101"));
  EXPECT_THAT(local.message(), HasSubstr("would pass the end of 128 bytes"));
  Status remote = checkBounds(block(0, 1, 28), 128, 28, "get");
  EXPECT_THAT(remote.message(), HasSubstr("get of 28 bytes at remote offset 1"));
}

TEST(Bounds, doesNotWrapAround) {
  EXPECT_EQ(checkBounds(block(UINT64_MAX - 7, 0, 16), 128, 128, "put").code(), Code::outOfRange);
  EXPECT_EQ(checkBounds(block(0, UINT64_MAX - 7, 16), 128, 128, "put").code(), Code::outOfRange);
  EXPECT_EQ(checkBounds(block(0, 0, UINT64_MAX), 128, 128, "put").code(), Code::outOfRange);
  Shape far{0, UINT64_MAX / 2, 0, 1, 4, 1};
  EXPECT_EQ(checkBounds(far, 128, 128, "put").code(), Code::outOfRange);
}

TEST(Bounds, looksAtTheLastPieceOfAStridedShape) {
  Shape shape{0, 32, 0, 8, 4, 8};
  EXPECT_TRUE(checkBounds(shape, 104, 32, "put").ok());
  EXPECT_EQ(checkBounds(shape, 103, 32, "put").code(), Code::outOfRange);
  EXPECT_EQ(checkBounds(shape, 104, 31, "put").code(), Code::outOfRange);
}

TEST(Bounds, nothingIsAlwaysInside) {
  EXPECT_TRUE(checkBounds({0, 9, 0, 9, 0, 9}, 0, 0, "put").ok());
}

TEST(Cursor, visitsEveryPieceInOrderAndCutsLongOnes) {
  std::vector<Shape> shapes{
      block(10, 20, 5), {0, 100, 0, 10, 2, 3}, block(0, 0, 0), block(7, 8, 1)};
  Cursor cursor(shapes);
  std::vector<std::array<uint64_t, 3>> seen;
  while (!cursor.atEnd()) {
    uint64_t size = cursor.left(4);
    seen.push_back({cursor.local(), cursor.remote(), size});
    cursor.advance(size);
  }
  std::vector<std::array<uint64_t, 3>> expected{
      {10, 20, 4}, {14, 24, 1}, {0, 0, 3}, {100, 10, 3}, {7, 8, 1}};
  EXPECT_EQ(seen, expected);
}

TEST(Cursor, isAtTheEndOfNothing) {
  std::vector<Shape> nothing;
  EXPECT_TRUE(Cursor(nothing).atEnd());
}

}  // namespace
}  // namespace hmc
