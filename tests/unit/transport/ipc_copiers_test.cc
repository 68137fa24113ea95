#include "transport/ipc/copiers.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace hmc::ipc {
namespace {

std::vector<char> pattern(size_t size) {
  std::vector<char> bytes(size);
  for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<char>(i * 31 + i / 4096);
  return bytes;
}

const Copiers::Allowed always = [] { return true; };

TEST(Copiers, stopAtThePieceThatIsNotAllowed) {
  for (size_t size : {size_t{1}, 4 * Copiers::kPiece, Copiers::kWorthwhile}) {
    for (size_t idle : {0, 2}) {
      Copiers copiers([&] { return idle; });
      const std::vector<char> source(size, 'x');
      std::vector<char> target(size, '.');
      std::atomic<int> asked{0};
      EXPECT_FALSE(copiers.run({OpKind::put, const_cast<char*>(source.data()), target.data(), size},
                               [&] { return ++asked == 1 && size > 1; }));
      const auto copied = static_cast<size_t>(std::count(target.begin(), target.end(), 'x'));
      EXPECT_EQ(copied, size > 1 ? Copiers::kPiece : 0) << size << " bytes, " << idle << " idle";
    }
  }
}

TEST(Copiers, copyEveryByteWithAndWithoutHelp) {
  size_t helpers = 0;
  Copiers copiers([&] { return helpers; });
  auto source = pattern(Copiers::kWorthwhile + 4097);  // not a multiple of anything
  for (size_t idle : {0, 1, 3, 99, 1}) {
    helpers = idle;
    std::vector<char> target(source.size() + 1, 'x');
    EXPECT_TRUE(copiers.run({OpKind::put, source.data(), target.data(), source.size()}, always));
    EXPECT_EQ(target.back(), 'x');
    target.pop_back();
    EXPECT_EQ(target, source) << idle << " idle cores";
  }
}

TEST(Copiers, serveSeveralThreadsAtOnce) {
  Copiers copiers;
  auto source = pattern(Copiers::kWorthwhile);
  std::vector<std::vector<char>> targets(3, std::vector<char>(source.size()));
  {
    std::vector<std::jthread> threads;
    for (auto& target : targets) {
      threads.emplace_back([&] {
        for (int i = 0; i < 3; ++i)
          EXPECT_TRUE(
              copiers.run({OpKind::get, target.data(), source.data(), source.size()}, always));
      });
    }
  }
  for (const auto& target : targets) EXPECT_EQ(target, source);
}

TEST(Copiers, whatIsIdleIsWhatDoesNotRun) {
  EXPECT_EQ(idleCores(4, "0.52 0.58 0.59 1/389 90"), 3U) << "only the calling thread";
  EXPECT_EQ(idleCores(4, "0.52 0.58 0.59 3/389 90"), 1U);
  EXPECT_EQ(idleCores(4, "9.52 8.58 0.59 12/389 90"), 0U);
  EXPECT_EQ(idleCores(2, "0.00 0.00 0.00 0/77 90"), 1U)
      << "the calling thread runs, whatever the file says";
  EXPECT_EQ(idleCores(8, ""), 0U);
  EXPECT_EQ(idleCores(8, "no numbers/here"), 0U);
}

}  // namespace
}  // namespace hmc::ipc
