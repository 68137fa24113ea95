#include "base/guarded_copy.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <array>
#include <string>

namespace hmc {
namespace {

constexpr size_t kPage = 4096;

// Two pages of which the second may be anything.
class GuardedCopy : public testing::Test {
 protected:
  void SetUp() override {
    pages_ = static_cast<char*>(
        mmap(nullptr, 2 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    ASSERT_NE(pages_, MAP_FAILED);
    std::fill_n(pages_, 2 * kPage, 'p');
  }
  void TearDown() override { munmap(pages_, 2 * kPage); }
  void protectSecond(int how) const { ASSERT_EQ(mprotect(pages_ + kPage, kPage, how), 0); }

  char* pages_ = nullptr;
  std::string ours_ = std::string(2 * kPage, 'o');
};

TEST_F(GuardedCopy, copiesWhatCanBeReadAndWritten) {
  EXPECT_TRUE(writeGuarded(pages_ + 100, ours_.data(), 5000));
  EXPECT_EQ(std::string(pages_, 2 * kPage),
            std::string(100, 'p') + std::string(5000, 'o') + std::string(2 * kPage - 5100, 'p'));
  EXPECT_TRUE(readGuarded(ours_.data(), pages_, 2 * kPage));
  EXPECT_EQ(ours_, std::string(pages_, 2 * kPage));
}

TEST_F(GuardedCopy, stopsWhereMemoryCannotBeRead) {
  protectSecond(PROT_NONE);
  EXPECT_FALSE(readGuarded(ours_.data(), pages_ + kPage, 1));
  EXPECT_FALSE(readGuarded(ours_.data(), pages_, 2 * kPage));
  EXPECT_TRUE(readGuarded(ours_.data(), pages_, kPage));
  const std::array<iovec, 3> parts{{{pages_, 10}, {pages_ + kPage - 20, 30}, {pages_, 10}}};
  const size_t got = readGuarded(ours_.data(), parts);
  EXPECT_LE(got, 30u);
  EXPECT_GE(got, 10u);
  EXPECT_EQ(readGuarded(ours_.data(), {parts.data(), 1}), 10u);
}

TEST_F(GuardedCopy, stopsWhereMemoryCannotBeWritten) {
  protectSecond(PROT_READ);
  EXPECT_FALSE(writeGuarded(pages_ + kPage, ours_.data(), 1));
  EXPECT_FALSE(writeGuarded(pages_, ours_.data(), 2 * kPage));
  EXPECT_EQ(pages_[kPage], 'p');
  munmap(pages_ + kPage, kPage);
  EXPECT_FALSE(writeGuarded(pages_ + kPage, ours_.data(), 1));
}

// What a driver maps cannot be looked up as pages, and can be copied all the same: as with the
// kernel's own page of that kind.
TEST_F(GuardedCopy, readsMemoryThatHasNoPages) {
  FILE* maps = std::fopen("/proc/self/maps", "re");
  ASSERT_NE(maps, nullptr);
  unsigned long from = 0;
  char line[512];
  while (from == 0 && std::fgets(line, sizeof(line), maps)) {
    if (std::string(line).find("[vvar]") != std::string::npos)
      from = std::strtoul(line, nullptr, 16);
  }
  std::fclose(maps);
  if (from == 0) GTEST_SKIP() << "this process has no page of that kind";
  EXPECT_TRUE(readGuarded(ours_.data(), reinterpret_cast<void*>(from), 16));  // NOLINT
}

}  // namespace
}  // namespace hmc
