#include "collective/reduce.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

namespace hmc::collective {
namespace {

constexpr DataType kTypes[] = {DataType::int8,     DataType::uint8,   DataType::int16,
                               DataType::uint16,   DataType::int32,   DataType::uint32,
                               DataType::int64,    DataType::uint64,  DataType::float16,
                               DataType::bfloat16, DataType::float32, DataType::float64};
constexpr ReduceOp kOps[] = {ReduceOp::sum, ReduceOp::product, ReduceOp::min, ReduceOp::max};

template <class Number>
std::vector<Number> combined(DataType type, ReduceOp op, std::vector<Number> a,
                             const std::vector<Number>& b) {
  combineOf(type, op)(a.data(), a.data(), b.data(), a.size() * sizeof(Number));
  return a;
}

uint16_t combinedBits(DataType type, ReduceOp op, uint16_t a, uint16_t b) {
  return combined<uint16_t>(type, op, {a}, {b})[0];
}

template <class Number>
void expectArithmetic(DataType type) {
  const std::vector<Number> a{1, 5, 7, 0, 100};
  const std::vector<Number> b{2, 3, 9, 4, 1};
  EXPECT_EQ(combined<Number>(type, ReduceOp::sum, a, b), (std::vector<Number>{3, 8, 16, 4, 101}));
  EXPECT_EQ(combined<Number>(type, ReduceOp::product, a, b),
            (std::vector<Number>{2, 15, 63, 0, 100}));
  EXPECT_EQ(combined<Number>(type, ReduceOp::min, a, b), (std::vector<Number>{1, 3, 7, 0, 1}));
  EXPECT_EQ(combined<Number>(type, ReduceOp::max, a, b), (std::vector<Number>{2, 5, 9, 4, 100}));
}

TEST(Reduce, CalculatesWithEachType) {
  expectArithmetic<int8_t>(DataType::int8);
  expectArithmetic<uint8_t>(DataType::uint8);
  expectArithmetic<int16_t>(DataType::int16);
  expectArithmetic<uint16_t>(DataType::uint16);
  expectArithmetic<int32_t>(DataType::int32);
  expectArithmetic<uint32_t>(DataType::uint32);
  expectArithmetic<int64_t>(DataType::int64);
  expectArithmetic<uint64_t>(DataType::uint64);
  expectArithmetic<float>(DataType::float32);
  expectArithmetic<double>(DataType::float64);
}

TEST(Reduce, KnowsSignsAndWrapsAround) {
  EXPECT_EQ(combined<int8_t>(DataType::int8, ReduceOp::min, {-1}, {1})[0], -1);
  EXPECT_EQ(combined<uint8_t>(DataType::uint8, ReduceOp::min, {255}, {1})[0], 1);
  EXPECT_EQ(combined<int8_t>(DataType::int8, ReduceOp::sum, {127}, {1})[0], -128);
  EXPECT_EQ(combined<uint16_t>(DataType::uint16, ReduceOp::product, {65535}, {65535})[0], 1);
  constexpr auto most = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(combined<int64_t>(DataType::int64, ReduceOp::sum, {most}, {1})[0],
            std::numeric_limits<int64_t>::min());
}

TEST(Reduce, KeepsNansOfEitherSide) {
  const float nan = std::nanf("");
  for (ReduceOp op : kOps) {
    EXPECT_TRUE(std::isnan(combined<float>(DataType::float32, op, {nan}, {1})[0]));
    EXPECT_TRUE(std::isnan(combined<float>(DataType::float32, op, {1}, {nan})[0]));
    for (auto [type, one, bad, infinity] :
         {std::tuple{DataType::float16, 0x3c00, 0x7e01, 0x7c00},
          std::tuple{DataType::bfloat16, 0x3f80, 0x7fc1, 0x7f80}}) {
      EXPECT_GT(combinedBits(type, op, bad, one) & 0x7fff, infinity);
      EXPECT_GT(combinedBits(type, op, one, bad) & 0x7fff, infinity);
    }
  }
}

TEST(Reduce, RoundsHalvesToTheNearestAndEven) {
  const auto sum = [](DataType type, uint16_t a, uint16_t b) {
    return combinedBits(type, ReduceOp::sum, a, b);
  };
  // 2048 + 1 lies between 2048 and 2050, 2050 + 1 between 2050 and 2052.
  EXPECT_EQ(sum(DataType::float16, 0x6800, 0x3c00), 0x6800);
  EXPECT_EQ(sum(DataType::float16, 0x6801, 0x3c00), 0x6802);
  EXPECT_EQ(sum(DataType::float16, 0x7bff, 0x7bff), 0x7c00);  // infinity
  EXPECT_EQ(sum(DataType::float16, 0x0001, 0x0001), 0x0002);  // subnormal
  EXPECT_EQ(sum(DataType::float16, 0x8001, 0x8001), 0x8002);
  EXPECT_EQ(combinedBits(DataType::float16, ReduceOp::product, 0x0003, 0x3800), 0x0002);
  // 256 + 1 and 258 + 1.
  EXPECT_EQ(sum(DataType::bfloat16, 0x4380, 0x3f80), 0x4380);
  EXPECT_EQ(sum(DataType::bfloat16, 0x4381, 0x3f80), 0x4382);
  EXPECT_EQ(sum(DataType::bfloat16, 0x7f7f, 0x7f7f), 0x7f80);
}

TEST(Reduce, EveryHalfTimesOneIsItself) {
  std::vector<uint16_t> all(65536);
  for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<uint16_t>(i);
  for (auto [type, one, infinity] : {std::tuple{DataType::float16, 0x3c00, 0x7c00},
                                     std::tuple{DataType::bfloat16, 0x3f80, 0x7f80}}) {
    const std::vector<uint16_t> ones(all.size(), static_cast<uint16_t>(one));
    for (auto find : {combineOf, plainCombineOf}) {
      auto result = all;
      find(type, ReduceOp::product)(result.data(), result.data(), ones.data(), 2 * all.size());
      for (size_t i = 0; i < all.size(); ++i) {
        if ((all[i] & 0x7fff) > infinity) {
          ASSERT_GT(result[i] & 0x7fff, infinity) << i;
        } else {
          ASSERT_EQ(result[i], all[i]);
        }
      }
    }
  }
}

// Numbers that are none may differ in their payload.
bool bothNan(DataType type, const char* a, const char* b) {
  const auto isNan = [type](const char* at) {
    uint16_t bits = 0;
    std::memcpy(&bits, at, sizeof(bits));
    return (bits & 0x7fff) > (type == DataType::float16 ? 0x7c00 : 0x7f80);
  };
  return (type == DataType::float16 || type == DataType::bfloat16) && isNan(a) && isNan(b);
}

TEST(Reduce, EveryProcessorGetsTheSame) {
  std::mt19937 random(7);
  std::vector<char> a(8 * 1001);
  std::vector<char> b(a.size());
  for (size_t i = 0; i < a.size(); ++i) {
    a[i] = static_cast<char>(random());
    b[i] = static_cast<char>(random());
  }
  for (DataType type : kTypes) {
    for (ReduceOp op : kOps) {
      const size_t size = 1001 * sizeOf(type);
      std::vector<char> wide(size);
      std::vector<char> plain(size);
      combineOf(type, op)(wide.data(), a.data(), b.data(), size);
      plainCombineOf(type, op)(plain.data(), a.data(), b.data(), size);
      if (type == DataType::float32 || type == DataType::float64) continue;  // payloads of NaNs
      for (size_t at = 0; at < size; at += sizeOf(type)) {
        const bool same = std::memcmp(&wide[at], &plain[at], sizeOf(type)) == 0;
        ASSERT_TRUE(same || bothNan(type, &wide[at], &plain[at]))
            << "type " << static_cast<int>(type) << " op " << static_cast<int>(op) << " at " << at;
      }
    }
  }
}

}  // namespace
}  // namespace hmc::collective
