#include "memory/host_copy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "fakes/pattern.h"

namespace hmc {
namespace {

using host_copy::kStreamingGroup;
using test::pattern;

// Copies `size` bytes between the given misalignments and checks them and both neighbours.
void expectExactCopy(size_t size, size_t dstOffset, size_t srcOffset) {
  static const std::string kSource = pattern(kStreamingThreshold + 8192);
  std::string dst(dstOffset + size + 64, '#');
  copyHost(dst.data() + dstOffset, kSource.data() + srcOffset, size);
  ASSERT_EQ(std::memcmp(dst.data() + dstOffset, kSource.data() + srcOffset, size), 0)
      << size << " bytes from +" << srcOffset << " to +" << dstOffset;
  ASSERT_EQ(dst.substr(0, dstOffset), std::string(dstOffset, '#'));
  ASSERT_EQ(dst.substr(dstOffset + size), std::string(64, '#'));
}

TEST(HostCopy, isExactAroundTheStreamingThreshold) {
  for (size_t extra : {0, 1, 63, 64, 65, 255, 256, 257, 4097}) {
    expectExactCopy(kStreamingThreshold + extra, 0, 0);
    expectExactCopy(kStreamingThreshold - 1 - extra, 0, 0);
  }
}

TEST(HostCopy, isExactAtEveryAlignmentOfEitherSide) {
  for (size_t offset = 0; offset < 64; offset += 7) {
    expectExactCopy(kStreamingThreshold + 100, offset, 0);
    expectExactCopy(kStreamingThreshold + 100, 0, offset);
    expectExactCopy(kStreamingThreshold + 100, offset, 63 - offset);
  }
}

TEST(HostCopy, isExactForSmallSizes) {
  for (size_t size : {0, 1, 2, 7, 8, 15, 64, 100, 1000, 65536, 1000003}) {
    expectExactCopy(size, 3, 5);
  }
}

// Every size up to some thousand bytes, to destinations that are aligned and that are not, with a
// byte on either side that must stay.
TEST(HostCopy, copiesEveryByteOfSmallSizesAndNoOther) {
  constexpr size_t kMost = 4200;
  std::vector<char> source(kMost);
  for (size_t i = 0; i < kMost; ++i) source[i] = static_cast<char>(i * 7 + i / 256 + 1);
  alignas(64) static char target[kMost + 192];
  for (size_t offset : {size_t{64}, size_t{65}, size_t{96}}) {
    for (size_t size = 0; size <= kMost; size += size < 80 ? 1 : 13) {
      std::fill(std::begin(target), std::end(target), 'x');
      copyHost(target + offset, source.data(), size);
      ASSERT_EQ(std::memcmp(target + offset, source.data(), size), 0) << size << " at " << offset;
      ASSERT_EQ(target[offset - 1], 'x') << size << " at " << offset;
      ASSERT_EQ(target[offset + size], 'x') << size << " at " << offset;
    }
  }
}

// Where a processor's own copy crawls, another one is taken.
TEST(HostCopy, isExactWhereBothSidesBeginAtAboutTheSameOffsetOfAPage) {
  constexpr size_t kPage = 4096;
  constexpr size_t kRoom = size_t{300} << 10;
  alignas(kPage) static char source[kRoom];
  alignas(kPage) static char target[kRoom];
  for (size_t i = 0; i < kRoom; ++i) source[i] = static_cast<char>(i * 7 + i / 256 + 1);
  for (size_t offset : {size_t{0}, size_t{5}, size_t{64}}) {
    for (size_t distance = 0; distance <= 33; ++distance) {
      for (size_t size : {size_t{2047}, size_t{2048}, size_t{2049}, size_t{2111}, size_t{4096},
                          size_t{65536}, size_t{290000}}) {
        char* const to = target + kPage + offset + distance;
        std::memset(target, 'x', kRoom);
        copyHost(to, source + offset, size);
        ASSERT_EQ(std::memcmp(to, source + offset, size), 0) << size << " at " << distance;
        ASSERT_EQ(to[-1], 'x') << size << " at " << distance;
        ASSERT_EQ(to[size], 'x') << size << " at " << distance;
      }
    }
  }
}

#if defined(__x86_64__)
// On any processor.
TEST(HostCopy, isExactByLines) {
  constexpr size_t kFrom = host_copy::kStringCopyFrom;
  const std::string source = pattern(kFrom + 300);
  for (size_t size = kFrom; size < kFrom + 130; ++size) {
    for (size_t offset : {0, 1, 63}) {
      std::string dst(offset + size + 64, '#');
      host_copy::copyLines(dst.data() + offset, source.data() + 5, size);
      ASSERT_EQ(dst, std::string(offset, '#') + source.substr(5, size) + std::string(64, '#'))
          << size << " bytes at +" << offset;
    }
  }
}
#endif

TEST(HostCopy, movesMemoryThatOverlaps) {
  for (size_t size : {size_t{10}, size_t{5000}, kStreamingThreshold + 5}) {
    const std::string source = pattern(size + 3);
    std::string up = source;
    std::string down = source;
    moveHost(up.data() + 3, up.data(), size);
    moveHost(down.data(), down.data() + 3, size);
    EXPECT_TRUE(up.substr(3) == source.substr(0, size)) << size;
    EXPECT_TRUE(down.substr(0, size) == source.substr(3)) << size;
  }
}

TEST(HostCopy, isExactAtEveryVectorWidthOfThisProcessor) {
  const std::string source = pattern(5 * kStreamingGroup + 64);
  for (const auto& loop : host_copy::streamingLoops()) {
    for (size_t groups : {0, 1, 5}) {
      for (size_t srcOffset : {0, 1, 63}) {
        std::string room((groups + 1) * kStreamingGroup, '#');
        char* dst = room.data() + (-reinterpret_cast<uintptr_t>(room.data()) % 64);
        loop.copy(dst, source.data() + srcOffset, groups);
        size_t size = groups * kStreamingGroup;
        ASSERT_EQ(std::memcmp(dst, source.data() + srcOffset, size), 0) << loop.name;
        ASSERT_EQ(dst[size], '#') << loop.name;
      }
    }
  }
}

// One of them goes downwards.
TEST(HostCopy, isExactWhereverTheTwoSidesBeginInTheirPages) {
  constexpr size_t kPage = 4096;
  constexpr size_t kGroups = 3;
  const std::string source = pattern(kGroups * kStreamingGroup + 2 * kPage);
  std::vector<char> room((kGroups + 1) * kStreamingGroup + kPage, '#');
  char* const dst = room.data() + (-reinterpret_cast<uintptr_t>(room.data()) % kPage) + 64;
  const size_t first = (-reinterpret_cast<uintptr_t>(source.data()) % kPage);
  for (const auto& loop : host_copy::streamingLoops()) {
    for (size_t offset : {0, 1, 48, 63, 64, 65, 80, 1000, 3900, 4095}) {
      std::fill(room.begin(), room.end(), '#');
      loop.copy(dst, source.data() + first + offset, kGroups);
      const size_t size = kGroups * kStreamingGroup;
      ASSERT_EQ(std::memcmp(dst, source.data() + first + offset, size), 0) << loop.name << offset;
      ASSERT_EQ(dst[-1], '#') << loop.name << offset;
      ASSERT_EQ(dst[size], '#') << loop.name << offset;
    }
  }
}

TEST(HostCopy, isExactWhenItStreamsPiecesOfAnySize) {
  const std::string source = pattern(3 * kStreamingGroup);
  for (size_t size : {size_t{0}, size_t{1}, size_t{63}, size_t{64}, kStreamingGroup - 1,
                      kStreamingGroup, kStreamingGroup + 63, 2 * kStreamingGroup + 1}) {
    for (size_t offset : {0, 1, 63}) {
      std::string dst(offset + size + 64, '#');
      streamHost(dst.data() + offset, source.data(), size);
      const std::string whole =
          std::string(offset, '#') + source.substr(0, size) + std::string(64, '#');
      ASSERT_EQ(dst, whole) << size << " bytes at +" << offset;
    }
  }
}

TEST(RowCopy, isExactInRowsAndOutOfThem) {
  constexpr size_t kPiece = size_t{316} << 10;
  constexpr size_t kSize = 2 * kStreamingThreshold + 100;
  const std::string source = pattern(kSize);
  std::string forwards(kSize, '#');
  RowCopy row;
  for (size_t at = 0; at < kSize; at += kPiece) {
    row.copy(forwards.data() + at, source.data() + at, std::min(kPiece, kSize - at));
  }
  EXPECT_TRUE(forwards == source);
  std::string backwards(kSize, '#');
  for (size_t end = kSize; end > 0;) {
    const size_t size = std::min(kPiece, end);
    end -= size;
    row.copy(backwards.data() + end, source.data() + end, size);
  }
  EXPECT_TRUE(backwards == source);
}

}  // namespace
}  // namespace hmc
