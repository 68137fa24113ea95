#include "pool/early_notes.h"

#include <gtest/gtest.h>

namespace hmc::pool {
namespace {

TEST(EarlyNotes, AreTakenOnce) {
  EarlyNotes notes(4);
  notes.add("a");
  notes.add("a");
  EXPECT_EQ(notes.size(), 1u);
  EXPECT_TRUE(notes.take("a"));
  EXPECT_FALSE(notes.take("a"));
}

TEST(EarlyNotes, OfNodesThatNeverBecomeMembersDoNotAddUp) {
  EarlyNotes notes(4);
  for (int i = 0; i < 1000; ++i) notes.add(std::to_string(i));
  EXPECT_EQ(notes.size(), 4u);
  EXPECT_FALSE(notes.take("0"));
  EXPECT_TRUE(notes.take("999"));
}

}  // namespace
}  // namespace hmc::pool
