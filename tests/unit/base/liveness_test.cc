#include "base/liveness.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <latch>
#include <thread>

namespace hmc {
namespace {

// A word that a child process shares with us.
class LivenessTest : public ::testing::Test {
 protected:
  LivenessTest()
      : word_(*new (mmap(nullptr, sizeof(uint32_t), PROT_READ | PROT_WRITE,
                         MAP_SHARED | MAP_ANONYMOUS, -1, 0)) std::atomic<uint32_t>(0)) {}
  ~LivenessTest() override { munmap(&word_, sizeof(uint32_t)); }
  std::atomic<uint32_t>& word_;
};

TEST_F(LivenessTest, beatsWhileTheThreadLives) {
  EXPECT_FALSE(isAlive(word_));
  std::latch begun(1);
  std::latch end(1);
  std::thread thread([&] {
    Liveness liveness(word_);
    begun.count_down();
    end.wait();
  });
  begun.wait();
  EXPECT_TRUE(isAlive(word_));
  end.count_down();
  thread.join();
  EXPECT_FALSE(isAlive(word_));
}

TEST_F(LivenessTest, stopsWhenTheProcessIsKilledBeforeItsNumberIsFree) {
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  pid_t child = fork();
  if (child == 0) {
    Liveness liveness(word_);
    (void)!write(ready[1], "x", 1);
    for (;;) pause();
  }
  char byte = 0;
  ASSERT_EQ(read(ready[0], &byte, 1), 1);
  EXPECT_TRUE(isAlive(word_));
  kill(child, SIGKILL);
  // Dead, but not waited for: its number is still its own.
  siginfo_t info{};
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT), 0);
  EXPECT_FALSE(isAlive(word_));
  waitpid(child, nullptr, 0);
  close(ready[0]);
  close(ready[1]);
}

}  // namespace
}  // namespace hmc
