#include "base/text.h"

#include <gtest/gtest.h>

namespace hmc {
namespace {

TEST(Printable, leavesTextAlone) {
  for (const char* text : {"", "worker-3 (10.0.0.3)",
                           "Gr\xc3\xbc\xc3\x9f"
                           "e",
                           "\xe6\x97\xa5", "\xf0\x9f\x98\x80", "\xed\x9f\xbf", "\xf4\x8f\xbf\xbf"})
    EXPECT_EQ(printable(text), text);
}

TEST(Printable, replacesWhatIsNoText) {
  EXPECT_EQ(printable("a\xff\xfe"
                      "b"),
            "a??b");
  EXPECT_EQ(printable("cut \xe6\x97"), "cut ??");
  EXPECT_EQ(printable("line\nline\x1b[31m\x7f"), "line?line?[31m?");
  EXPECT_EQ(printable(std::string("\0", 1)), "?");
  for (const char* bad : {"\xc0\xaf", "\xe0\x80\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\x80"})
    EXPECT_EQ(printable(bad), std::string(std::string(bad).size(), '?'));
}

}  // namespace
}  // namespace hmc
