#include "bench/report/progress.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <cstdlib>
#include <numeric>

#include "bench/expected_time.h"
#include "bench/report/report.h"

namespace hmc::bench {
namespace {

using namespace std::chrono_literals;
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

TEST(ProgressLine, estimatesFromWhatTheStepsShouldTakeAndDid) {
  const std::vector<double> expected{2, 2, 3, 5};
  EXPECT_EQ("[1/4] put 8 B, about 12 s left", progressLine("put 8 B", 1, expected, 0s));
  EXPECT_EQ("[3/4] put 64 KiB, about 8 s left", progressLine("put 64 KiB", 3, expected, 4s));
  EXPECT_EQ("[3/4] put, about 16 s left", progressLine("put", 3, expected, 9s)) << "twice as slow";
  EXPECT_EQ("[2/3] get, about 5 min left", progressLine("get", 2, {1, 100, 200}, 1s));
  EXPECT_EQ("[5/4] more than was known", progressLine("more than was known", 5, expected, 60s));
  EXPECT_EQ("no idea how many", progressLine("no idea how many", 5, {}, 60s));
}

// A run whose small transfers are quick said "2 s left" and took minutes.
TEST(ProgressLine, knowsThatLargeTransfersComeLast) {
  Plan plan;
  for (size_t bytes = 8; bytes <= size_t{4} << 30; bytes *= 2) plan.sizes.push_back(bytes);
  SessionOptions session;
  session.bytes = plan.sizes.back();
  const auto sweep = secondsOfSweep({"tcp"}, plan, session, true);
  const double all = std::accumulate(sweep.begin(), sweep.end(), 0.0);
  // Put and get of 4 GiB, alone and in a window: 32 times each, at 1 GB/s.
  EXPECT_GT(all, 4 * 32 * 4.0);
  EXPECT_LT(all, 30 * 60);
  const auto quick = std::chrono::duration<double>(4.4);  // 20 steps of 0.2 s
  EXPECT_THAT(progressLine("put", 21, sweep, quick), HasSubstr(" min left"));
  plan.sizes = {8};
  EXPECT_EQ(4U + 5 + 1, secondsOfSweep({"tcp"}, plan, session, true).size());
  EXPECT_EQ(4U + 5, secondsOfSweep({"ipc"}, plan, session, false).size());
}

TEST(Progress, drawsALineAndErasesItAtTheEnd) {
  Terminal terminal;
  ASSERT_GE(terminal.fd(), 0);
  {
    Progress progress({1}, terminal.fd());
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
  Progress progress({1}, terminal.fd());
  progress.next(std::string(500, 'x'));
  EXPECT_LT(terminal.seen().size(), 90U);
}

TEST(Progress, isSilentWhereThereIsNoTerminal) {
  int ends[2];
  ASSERT_EQ(0, pipe2(ends, O_NONBLOCK));
  {
    Progress progress({1}, ends[1]);
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
