#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>

#include "fakes/must.h"
#include "store/server.h"
#include "store/store.h"
#include "unit/store/waits.h"

// A server that goes and comes back with an empty memory.

namespace hmc::store {
namespace {

using test::must;

class Reconnect : public testing::Test {
 protected:
  std::shared_ptr<Store> open(std::chrono::milliseconds grace = kLong) {
    return must(openStore(address, {.grace = grace}, kLong));
  }
  void stop() { server.reset(); }
  void start() { server = must(Server::start(address, {})); }

  std::unique_ptr<Server> server = must(Server::start("tcp://127.0.0.1:0", {}));
  const std::string address = server->address();
};

// The next change, of several that may come at once.
class Changes {
 public:
  explicit Changes(std::unique_ptr<Watch> watch) : watch_(std::move(watch)) {}

  std::string next() {
    while (at_ == batch_.size()) {
      batch_ = must(watch_->next(kLong));
      at_ = 0;
    }
    const Change& change = batch_[at_++];
    if (change.kind == Change::Kind::current) return ".";
    return change.kind == Change::Kind::removed ? "-" + change.entry.key
                                                : change.entry.key + "=" + change.entry.value;
  }

 private:
  const std::unique_ptr<Watch> watch_;
  std::vector<Change> batch_;
  size_t at_ = 0;
};

TEST_F(Reconnect, CallsWaitForTheServerToComeBack) {
  auto store = open();
  ASSERT_TRUE(store->set("key", "1", kLong).ok());
  stop();
  auto later = std::async(std::launch::async, [&] { return store->set("key", "2", kLong); });
  auto awaited = std::async(std::launch::async, [&] { return store->await("key", kLong); });
  start();
  EXPECT_TRUE(later.get().ok());
  EXPECT_EQ(must(awaited.get()), "2");
}

TEST_F(Reconnect, ACallEndsAtItsDeadlineAndSaysWhatIsOutOfReach) {
  auto store = open();
  stop();
  const Status status = store->get("key", kShort).status();
  EXPECT_EQ(status.code(), Code::deadlineExceeded);
  EXPECT_NE(status.message().find(address), std::string::npos) << status.message();
}

TEST_F(Reconnect, AnAwaitThatIsParkedGoesOnAtTheNextServer) {
  auto store = open();
  auto other = open();
  auto awaited = std::async(std::launch::async, [&] { return store->await("key", kLong); });
  // Parked, or not sent yet: both must do.
  ASSERT_TRUE(other->set("other", "1", kLong).ok());
  stop();
  start();
  ASSERT_TRUE(other->set("key", "here", kLong).ok());
  EXPECT_EQ(must(awaited.get()), "here");
}

TEST_F(Reconnect, ALeaseIsRestoredWithItsKeys) {
  auto store = open();
  auto lease = must(store->lease(kLong, kLong));
  ASSERT_TRUE(store->set("a", "1", kLong, lease).ok());
  ASSERT_TRUE(store->set("b", "2", kLong, lease).ok());
  ASSERT_TRUE(store->set("gone", "3", kLong, lease).ok());
  ASSERT_TRUE(store->set("free", "4", kLong).ok());
  ASSERT_TRUE(store->remove("gone", kLong).ok());
  must(store->compareAndSet("b", "2", "5", kLong, lease));
  stop();
  EXPECT_EQ(lease->status().code(), Code::disconnected);
  start();
  auto other = open();
  EXPECT_EQ(must(other->await("a", kLong)), "1");
  EXPECT_EQ(must(other->await("b", kLong)), "5");
  EXPECT_EQ(must(other->list("", kLong)).size(), 2u);
  ASSERT_TRUE(store->set("c", "6", kLong, lease).ok());
  ASSERT_TRUE(lease->revoke(kLong).ok());
  EXPECT_TRUE(must(other->list("", kLong)).empty());
}

TEST_F(Reconnect, AKeyThatSomebodyElseHasSetStaysTheirs) {
  auto store = open();
  auto lease = must(store->lease(kLong, kLong));
  ASSERT_TRUE(store->set("mine", "1", kLong, lease).ok());
  ASSERT_TRUE(store->set("other", "1", kLong, lease).ok());
  // Until the second client is faster than the first, which pauses before it dials again.
  for (bool stolen = false; !stolen;) {
    stop();
    start();
    auto thief = open();
    stolen = must(thief->compareAndSet("mine", std::nullopt, "2", kLong)).done;
    EXPECT_EQ(must(thief->await("other", kLong)), "1");
  }
  while (lease->status().code() == Code::disconnected) std::this_thread::yield();
  EXPECT_EQ(lease->status().code(), Code::alreadyExists);
  EXPECT_NE(lease->status().message().find("mine"), std::string::npos);
  ASSERT_TRUE(lease->revoke(kLong).ok());
  EXPECT_EQ(must(store->get("mine", kLong)), "2");
  EXPECT_EQ(store->get("other", kLong).status().code(), Code::notFound);
}

TEST_F(Reconnect, AWatchGoesOnWithTheDifferences) {
  auto store = open(std::chrono::milliseconds(1));
  auto other = open();
  auto lease = must(store->lease(kLong, kLong));
  ASSERT_TRUE(store->set("w/leased", "1", kLong, lease).ok());
  ASSERT_TRUE(other->set("w/lost", "1", kLong).ok());
  Changes changes(must(store->watch("w/")));
  EXPECT_EQ(changes.next(), "w/leased=1");
  EXPECT_EQ(changes.next(), "w/lost=1");
  EXPECT_EQ(changes.next(), ".");
  stop();
  start();
  // Its own key is there again before the watch looks.
  EXPECT_EQ(changes.next(), "-w/lost");
  ASSERT_TRUE(other->set("w/new", "2", kLong).ok());
  EXPECT_EQ(changes.next(), "w/new=2");
}

TEST_F(Reconnect, KeysOfOthersThatComeBackInTimeWereNeverGone) {
  auto watcher = open();
  auto keeper = open();
  auto lease = must(keeper->lease(kLong, kLong));
  ASSERT_TRUE(keeper->set("w/kept", "1", kLong, lease).ok());
  Changes changes(must(watcher->watch("w/")));
  EXPECT_EQ(changes.next(), "w/kept=1");
  EXPECT_EQ(changes.next(), ".");
  for (int round = 0; round < 3; ++round) {
    stop();
    start();
    EXPECT_EQ(must(watcher->await("w/kept", kLong)), "1");
    const std::string end = "w/" + std::to_string(round);
    ASSERT_TRUE(keeper->set(end, "", kLong).ok());
    EXPECT_EQ(changes.next(), end + "=");
    ASSERT_TRUE(keeper->remove(end, kLong).ok());
    EXPECT_EQ(changes.next(), "-" + end);
  }
}

TEST_F(Reconnect, AWatchAndALeaseThatAreDroppedMeanwhileStayDropped) {
  auto store = open();
  auto lease = must(store->lease(kLong, kLong));
  ASSERT_TRUE(store->set("held", "1", kLong, lease).ok());
  auto watch = must(store->watch(""));
  stop();
  lease.reset();
  watch.reset();
  start();
  ASSERT_TRUE(store->set("end", "1", kLong).ok());
  EXPECT_EQ(must(store->list("", kLong)).size(), 1u);
}

TEST_F(Reconnect, WhatMayHaveBeenDoneIsNotRepeated) {
  auto store = open();
  std::atomic<bool> stopped{false};
  int64_t counted = 0;
  auto counting = std::async(std::launch::async, [&] {
    Code last = Code::ok;
    while (!stopped) {
      const auto sum = store->add("count", 1, kLong);
      if (sum.ok()) {
        // Never twice for one call: the answers go up by one, or begin again.
        EXPECT_TRUE(*sum == counted + 1 || *sum == 1) << *sum << " after " << counted;
        counted = *sum;
      } else {
        last = sum.status().code();
        EXPECT_EQ(last, Code::disconnected) << sum.status().toString();
        counted = 0;
      }
    }
  });
  for (int round = 0; round < 5; ++round) {
    stop();
    start();
    must(open()->await("count", kLong));
  }
  stopped = true;
  counting.get();
}

TEST_F(Reconnect, AStoreThatIsOutOfReachCanBeClosed) {
  auto store = open();
  auto lease = must(store->lease(kLong, kLong));
  auto watch = must(store->watch(""));
  stop();
}

}  // namespace
}  // namespace hmc::store
