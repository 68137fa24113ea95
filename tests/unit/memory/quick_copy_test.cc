#include "memory/quick_copy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace hmc {
namespace {

// Every size up to some thousand bytes, to destinations that are aligned and that are not, with a
// byte on either side that must stay.
TEST(QuickCopy, copiesEveryByteAndNoOther) {
  constexpr size_t kMost = 4200;
  std::vector<char> source(kMost);
  for (size_t i = 0; i < kMost; ++i) source[i] = static_cast<char>(i * 7 + i / 256 + 1);
  alignas(64) static char target[kMost + 192];
  for (size_t offset : {size_t{64}, size_t{65}, size_t{96}}) {
    for (size_t size = 0; size <= kMost; size += size < 80 ? 1 : 13) {
      std::fill(std::begin(target), std::end(target), 'x');
      quickCopy(target + offset, source.data(), size);
      ASSERT_EQ(std::memcmp(target + offset, source.data(), size), 0) << size << " at " << offset;
      ASSERT_EQ(target[offset - 1], 'x') << size << " at " << offset;
      ASSERT_EQ(target[offset + size], 'x') << size << " at " << offset;
    }
  }
}

}  // namespace
}  // namespace hmc
