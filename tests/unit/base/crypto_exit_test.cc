#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <latch>
#include <semaphore>
#include <thread>

#include "base/proof.h"
#include "unit/base/tls_pair.h"

namespace hmc {
namespace {

constexpr int kWrong = 3;
std::latch working{2};
std::counting_semaphore<2> refusals{0};

// A thread that ended would meet OpenSSL's own end of threads.
[[noreturn]] void wasRefused() {
  refusals.release();
  for (;;) pause();
}

void proveForEver() {
  const std::string usual = proof("secret", "text");
  working.count_down();
  while (proof("secret", "text") == usual) continue;
  wasRefused();
}

void shakeHandsForEver() {
  const test::Context context = test::contextOf(test::kBySecret, "hush");
  for (bool first = true;; first = false) {
    int fds[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds) != 0) _exit(kWrong);
    const Fd ends[] = {Fd(fds[0]), Fd(fds[1])};
    auto dialler = context->dial(fds[0]);
    auto acceptor = context->accept(fds[1]);
    if (!dialler.ok() || !acceptor.ok()) break;
    bool up = false;
    for (int i = 0; i < 10; ++i) {
      (*dialler)->handshake();
      (*acceptor)->handshake();
      up = (*dialler)->isUp() && (*acceptor)->isUp();
    }
    if (!up) break;
    if (first) working.count_down();
  }
  wasRefused();
}

// Runs after OpenSSL has freed what it works with, since it was registered before that was there.
void awaitRefusals() {
  for (int i = 0; i < 2; ++i) {
    if (!refusals.try_acquire_for(std::chrono::seconds(30))) _exit(kWrong);
  }
}

void exitAmidWork() {
  std::atexit(awaitRefusals);
  std::thread(proveForEver).detach();
  std::thread(shakeHandsForEver).detach();
  working.wait();
  std::exit(0);
}

// A process may end while threads of a Node or a pool are in the middle of a handshake.
TEST(CryptoAtExit, isRefusedOnceOpensslIsGone) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  for (int i = 0; i < 5; ++i) EXPECT_EXIT(exitAmidWork(), testing::ExitedWithCode(0), "");
}

// Its parent's threads are not there, and perhaps were in the middle of it.
TEST(CryptoAtExit, aForkedChildEndsAtOnce) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer's own locks may be taken in the child of a fork";
#endif
  std::atomic<bool> stop{false};
  std::thread busy([&] {
    while (!stop) (void)proof("secret", "text");
  });
  for (int i = 0; i < 50; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(30);
      std::exit(0);
    }
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  stop = true;
  busy.join();
}

}  // namespace
}  // namespace hmc
