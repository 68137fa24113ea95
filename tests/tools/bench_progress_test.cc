#include "bench/report/progress.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <cstdlib>

#include "bench/report/report.h"

namespace hmc::bench {
namespace {

using std::chrono::seconds;
using testing::HasSubstr;

// The two sides of a terminal of our own.
class Terminal {
 public:
  Terminal() : screen_(posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC)) {
    if (screen_ < 0 || grantpt(screen_) != 0 || unlockpt(screen_) != 0) return;
    program_ = open(ptsname(screen_), O_RDWR | O_NOCTTY | O_CLOEXEC);
  }
  ~Terminal() {
    close(program_);
    close(screen_);
  }
  int fd() const { return program_; }

  // Everything that was written until now. The kernel hands it over in its own time, so a mark of
  // ours goes behind it.
  std::string seen() const {
    std::string text;
    char byte = '\a';
    if (write(program_, &byte, 1) != 1) return "no terminal";
    pollfd entry{screen_, POLLIN, 0};
    while (poll(&entry, 1, 60 * 1000) > 0 && read(screen_, &byte, 1) == 1 && byte != '\a') {
      text += byte;
    }
    return text;
  }

 private:
  int screen_ = -1;
  int program_ = -1;
};

TEST(ProgressLine, estimatesFromTheStepsThatAreOver) {
  EXPECT_EQ("[1/12] put 8 B", progressLine("put 8 B", 1, 12, seconds(0)));
  EXPECT_EQ("[3/12] put 64 KiB, about 10 s left", progressLine("put 64 KiB", 3, 12, seconds(2)));
  EXPECT_EQ("[2/12] get, about 11 min left", progressLine("get", 2, 12, seconds(60)));
  EXPECT_EQ("[13/12] more than was known",
            progressLine("more than was known", 13, 12, seconds(60)));
  EXPECT_EQ("no idea how many", progressLine("no idea how many", 5, 0, seconds(60)));
}

TEST(Progress, drawsALineAndErasesItAtTheEnd) {
  Terminal terminal;
  ASSERT_GE(terminal.fd(), 0);
  {
    Progress progress(1, terminal.fd());
    progress.expect(2);
    progress.skip(1);
    progress.next("put 8 B");
    EXPECT_THAT(terminal.seen(), HasSubstr("[1/2] put 8 B"));
    progress.next("get 8 B");
    EXPECT_THAT(terminal.seen(), HasSubstr("[2/2] get 8 B"));
  }
  EXPECT_EQ("\r\033[2K", terminal.seen());
}

TEST(Progress, cutsALineThatWouldWrap) {
  Terminal terminal;
  ASSERT_GE(terminal.fd(), 0);
  Progress progress(1, terminal.fd());
  progress.next(std::string(500, 'x'));
  EXPECT_LT(terminal.seen().size(), 90U);
}

TEST(Progress, isSilentWhereThereIsNoTerminal) {
  int ends[2];
  ASSERT_EQ(0, pipe2(ends, O_NONBLOCK));
  {
    Progress progress(1, ends[1]);
    progress.next("put 8 B");
  }
  char byte = 0;
  EXPECT_EQ(-1, read(ends[0], &byte, 1));
  close(ends[0]);
  close(ends[1]);
}

TEST(Colour, isForTerminalsThatDoNotRefuseIt) {
  Terminal terminal;
  ASSERT_GE(terminal.fd(), 0);
  setenv("TERM", "xterm", 1);
  unsetenv("NO_COLOR");
  EXPECT_TRUE(wantsColour(terminal.fd()));
  setenv("NO_COLOR", "1", 1);
  EXPECT_FALSE(wantsColour(terminal.fd()));
  unsetenv("NO_COLOR");
  setenv("TERM", "dumb", 1);
  EXPECT_FALSE(wantsColour(terminal.fd()));
  setenv("TERM", "xterm", 1);
  int ends[2];
  ASSERT_EQ(0, pipe(ends));
  EXPECT_FALSE(wantsColour(ends[1]));
  close(ends[0]);
  close(ends[1]);
}

}  // namespace
}  // namespace hmc::bench
