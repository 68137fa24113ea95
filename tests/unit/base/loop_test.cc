#include "base/loop.h"

#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <future>
#include <optional>
#include <semaphore>

namespace hmc {
namespace {

using namespace std::chrono_literals;

constexpr auto kLoopPatience = 20s;

// A loop and a connected pair of sockets; `here` is what it watches.
class LoopTest : public testing::Test {
 protected:
  LoopTest() : loop(*Loop::create("test-loop")) {
    int both[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, both) != 0) return;
    here = Fd(both[0]);
    there = Fd(both[1]);
  }
  ~LoopTest() override {
    loop->run([this] { watch.reset(); });
  }

  // Counts what the loop says about `here`, and reads nothing.
  void watchHere(uint32_t events) {
    loop->run([=, this] {
      watch = *loop->watch(here.get(), events, [this](uint32_t ready) {
        last = ready;
        watch->ignore(EPOLLIN | EPOLLOUT);
        called.release();
      });
    });
  }
  bool hears() { return called.try_acquire_for(kLoopPatience); }
  // After this the loop has seen everything that was ready before.
  void settle() {
    loop->run([] {});
    loop->run([] {});
  }
  void say() { ASSERT_EQ(write(there.get(), "x", 1), 1); }

  std::shared_ptr<Loop> loop;
  Fd here, there;
  std::unique_ptr<Loop::Watch> watch;
  std::counting_semaphore<> called{0};
  std::atomic<uint32_t> last{0};
};

TEST_F(LoopTest, runsTasksInOrderOnItsOwnThread) {
  std::vector<int> order;
  for (int i = 0; i < 100; ++i) loop->post([&, i] { order.push_back(i); });
  bool onThread = false;
  loop->run([&] { onThread = loop->onThread(); });
  EXPECT_TRUE(onThread);
  EXPECT_FALSE(loop->onThread());
  ASSERT_EQ(order.size(), 100u);
  EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
}

TEST_F(LoopTest, aTaskMayRunAndPostOthers) {
  std::promise<void> later;
  loop->run([&] {
    bool nested = false;
    loop->run([&] { nested = true; });
    EXPECT_TRUE(nested);
    loop->post([&] { later.set_value(); });
  });
  EXPECT_EQ(later.get_future().wait_for(kLoopPatience), std::future_status::ready);
}

TEST(Loop, dropsTheTasksThatItHadNotBegun) {
  auto loop = *Loop::create("test-loop");
  auto token = std::make_shared<int>(0);
  std::weak_ptr<int> seen = token;
  std::promise<void> begun;
  std::promise<void> goOn;
  loop->post([&] {
    begun.set_value();
    goOn.get_future().wait();
  });
  begun.get_future().wait();
  loop->post([token] { ADD_FAILURE() << "a task ran after stop()"; });
  token.reset();
  std::jthread stopper([&] { loop->stop(); });
  // stop() drops what was queued before it waits for the task that runs.
  while (!seen.expired()) std::this_thread::yield();
  goOn.set_value();
  stopper.join();
  loop->post([] { ADD_FAILURE() << "a task ran after stop()"; });
}

TEST_F(LoopTest, saysWhenADescriptorIsReadable) {
  watchHere(EPOLLIN);
  say();
  ASSERT_TRUE(hears());
  EXPECT_EQ(last, EPOLLIN);
}

TEST_F(LoopTest, saysWhenADescriptorIsWritable) {
  watchHere(EPOLLIN);
  watch->want(EPOLLOUT);
  ASSERT_TRUE(hears());
  EXPECT_EQ(last, EPOLLOUT);
}

TEST_F(LoopTest, saysAgainWhileNobodyHasRead) {
  watchHere(EPOLLIN);
  say();
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(hears());
    watch->want(EPOLLIN);
  }
}

TEST_F(LoopTest, whatCameWhileItWasIgnoredIsSaidWhenItIsWanted) {
  watchHere(EPOLLIN);
  watch->ignore(EPOLLIN);
  EXPECT_FALSE(watch->wants(EPOLLIN));
  say();
  settle();
  EXPECT_FALSE(called.try_acquire());
  watch->want(EPOLLIN);
  EXPECT_TRUE(hears());
}

TEST_F(LoopTest, aConnectionThatBrokeWhileItWasIgnoredIsSaidWhenItIsWanted) {
  watchHere(EPOLLIN);
  watch->ignore(EPOLLIN);
  there.reset();
  settle();
  EXPECT_FALSE(called.try_acquire());
  watch->want(EPOLLIN);
  ASSERT_TRUE(hears());
  EXPECT_NE(last & EPOLLHUP, 0u);
}

TEST_F(LoopTest, needsADescriptorThatCanBeWatched) {
  loop->run([&] { EXPECT_FALSE(loop->watch(-1, EPOLLIN, [](uint32_t) {}).ok()); });
}

TEST_F(LoopTest, twoThatAreReadyAtOnceMayDropEachOther) {
  for (int round = 0; round < 100; ++round) {
    Fd events[2] = {Fd(eventfd(1, EFD_CLOEXEC)), Fd(eventfd(1, EFD_CLOEXEC))};
    std::unique_ptr<Loop::Watch> watches[2];
    std::atomic<int> calls{0};
    loop->run([&] {
      for (int i : {0, 1}) {
        watches[i] = *loop->watch(events[i].get(), EPOLLIN, [&](uint32_t) {
          ++calls;
          watches[0].reset();
          watches[1].reset();
        });
      }
    });
    settle();
    EXPECT_EQ(calls, 1);
  }
}

TEST_F(LoopTest, timersCallInTheOrderOfTheirTimesAndNotBefore) {
  std::optional<Loop::Timer> slow, quick, cancelled, again;
  std::promise<void> done;
  std::vector<int> order;
  const auto begin = Loop::Clock::now();
  loop->run([&] {
    for (auto* timer : {&slow, &quick, &cancelled, &again}) timer->emplace(*loop);
    slow->after(30ms, [&] {
      order.push_back(3);
      done.set_value();
    });
    cancelled->after(1ms, [&] { order.push_back(0); });
    again->after(1ms, [&] { order.push_back(0); });
    quick->after(10ms, [&] {
      order.push_back(1);
      quick->after(5ms, [&] { order.push_back(2); });
    });
    cancelled->cancel();
    again->after(60s, [&] { order.push_back(0); });
  });
  ASSERT_EQ(done.get_future().wait_for(kLoopPatience), std::future_status::ready);
  EXPECT_GE(Loop::Clock::now() - begin, 30ms);
  loop->run([&] {
    for (auto* timer : {&slow, &quick, &cancelled, &again}) timer->reset();
  });
  EXPECT_EQ(order, (std::vector<int>{1, 2, 3}));
}

TEST_F(LoopTest, aTimerMayDestroyItselfAndOthersThatAreDue) {
  std::optional<Loop::Timer> timers[2];
  std::atomic<int> calls{0};
  std::promise<void> done;
  loop->run([&] {
    for (auto& timer : timers) {
      timer.emplace(*loop);
      timer->after(0ms, [&] {
        ++calls;
        timers[0].reset();
        timers[1].reset();
        done.set_value();
      });
    }
  });
  ASSERT_EQ(done.get_future().wait_for(kLoopPatience), std::future_status::ready);
  settle();
  EXPECT_EQ(calls, 1);
}

TEST(BusyLoop, looksWhileThereIsTrafficAndSleepsWhenItHasSettled) {
  Fd event(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  std::atomic<int> looks{0};
  std::atomic<int> found{5};  // so many looks find something
  std::counting_semaphore<> slept{0};
  Loop::BusyPoll busy;
  busy.spin = 100us;
  busy.looksPerPoll = 4;
  busy.look = [&] {
    ++looks;
    return found.fetch_sub(1) > 0;
  };
  busy.beforeSleep = [&] {
    slept.release();
    return true;
  };
  auto loop = *Loop::create("test-busy", busy);
  ASSERT_TRUE(slept.try_acquire_for(kLoopPatience));
  EXPECT_EQ(looks, 0);
  std::unique_ptr<Loop::Watch> watch;
  loop->run([&] {
    watch = *loop->watch(event.get(), EPOLLIN, [&](uint32_t) {
      eventfd_t ignored;
      eventfd_read(event.get(), &ignored);
    });
  });
  while (slept.try_acquire()) continue;
  eventfd_write(event.get(), 1);
  while (found > 0 || !slept.try_acquire_for(kLoopPatience)) continue;
  EXPECT_GT(looks, 5);
  loop->run([&] { watch.reset(); });
}

TEST(BusyLoop, looksAgainWhenSomethingCameJustBeforeItSlept) {
  std::atomic<int> looks{0};
  std::atomic<bool> came{true};
  Loop::BusyPoll busy;
  busy.spin = 10s;  // until the look that makes it stop
  busy.look = [&] {
    ++looks;
    return false;
  };
  busy.beforeSleep = [&] { return !came.exchange(false); };
  auto loop = *Loop::create("test-busy", busy);
  while (looks == 0) std::this_thread::yield();
}

}  // namespace
}  // namespace hmc
