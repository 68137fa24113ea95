#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "etcd/etcd_server.h"
#include "fakes/must.h"
#include "store/group.h"
#include "store/store.h"

// Three members, of which one is enough to lose.

namespace hmc::store {
namespace {

using hmc::test::EtcdServer;
using hmc::test::must;

constexpr std::chrono::seconds kClusterPatience{60};

// Retries what must not be repeated without being asked; `attempts` counts what may have been done.
int64_t addUntilDone(Store& store, const std::string& key, int& attempts) {
  for (;;) {
    ++attempts;
    const auto sum = store.add(key, 1, kClusterPatience);
    if (sum.ok()) return *sum;
    EXPECT_EQ(sum.status().code(), Code::disconnected) << sum.status().toString();
  }
}

class EtcdCluster : public testing::Test {
 protected:
  void SetUp() override {
    if (!EtcdServer::isInstalled()) GTEST_SKIP() << EtcdServer::kMissing;
    server = std::make_unique<EtcdServer>(test::EtcdOptions{.members = 3});
  }
  std::shared_ptr<Store> open() const {
    return must(openStore(server->url(), {}, kClusterPatience));
  }

  std::unique_ptr<EtcdServer> server;
};

TEST_F(EtcdCluster, EverythingGoesOnWhenTheLeaderIsKilled) {
  // Whichever member each of them asks.
  std::vector<std::shared_ptr<Store>> stores;
  std::vector<std::unique_ptr<Watch>> watches;
  for (int i = 0; i < 4; ++i) {
    stores.push_back(open());
    watches.push_back(must(stores.back()->watch("")));
  }
  auto lease = must(stores[0]->lease(std::chrono::seconds(10), kClusterPatience));
  ASSERT_TRUE(stores[0]->set("held", "1", kClusterPatience, lease).ok());
  int attempts = 0;
  int64_t sum = addUntilDone(*stores[1], "count", attempts);

  server->kill(server->leader());
  // Joins begin while there is no leader.
  std::thread joining([&] {
    const auto group = must(Group::join(stores[2], {.name = "g", .capacity = 4}, kClusterPatience));
    EXPECT_EQ(group->self().rank, 0u);
    EXPECT_TRUE(group->leave(kClusterPatience).ok());
  });
  for (int i = 0; i < 20; ++i) sum = addUntilDone(*stores[1], "count", attempts);
  joining.join();
  EXPECT_GE(sum, 21);
  EXPECT_LE(sum, attempts);
  const auto swap = must(stores[3]->compareAndSet("held", "1", "2", kClusterPatience));
  EXPECT_TRUE(swap.done);
  ASSERT_TRUE(stores[3]->set("last", "1", kClusterPatience).ok());
  for (auto& watch : watches) {
    std::string counted;
    bool last = false;
    while (!last) {
      for (const Change& change : must(watch->next(kClusterPatience))) {
        EXPECT_FALSE(change.kind == Change::Kind::removed && change.entry.key == "held");
        if (change.entry.key == "count") counted = change.entry.value;
        last = last || change.entry.key == "last";
      }
    }
    EXPECT_EQ(counted, std::to_string(sum));
  }
  EXPECT_NE(lease->status().code(), Code::alreadyExists);
}

// Unlike one that was killed it ends no connection.
TEST_F(EtcdCluster, EverythingGoesOnWhileAnyOfThemIsStopped) {
  auto store = open();
  auto watch = must(store->watch("round"));
  auto lease = must(store->lease(std::chrono::seconds(60), kClusterPatience));
  ASSERT_TRUE(store->set("held", "1", kClusterPatience, lease).ok());
  for (size_t member = 0; member < 3; ++member) {
    server->stop(member);
    const std::string round = std::to_string(member);
    // Which of them the store asked before is not known: one of the three rounds stops that one.
    ASSERT_TRUE(store->set("round" + round, "1", kClusterPatience).ok());
    EXPECT_EQ(must(store->get("round" + round, kClusterPatience)), "1");
    EXPECT_EQ(must(store->await("held", kClusterPatience)), "1");
    for (bool told = false; !told;) {
      for (const Change& change : must(watch->next(kClusterPatience)))
        told = told || change.entry.key == "round" + round;
    }
    server->goOn(member);
  }
}

TEST_F(EtcdCluster, TheLastOfThreeAnswersNobodyUntilASecondComesBack) {
  auto store = open();
  ASSERT_TRUE(store->set("key", "1", kClusterPatience).ok());
  server->kill(0);
  server->kill(1);
  const Status status = store->set("key", "2", std::chrono::milliseconds(500));
  EXPECT_EQ(status.code(), Code::deadlineExceeded) << status.toString();
  server->start(1);
  EXPECT_TRUE(store->set("key", "3", kClusterPatience).ok());
  EXPECT_EQ(must(store->get("key", kClusterPatience)), "3");
}

}  // namespace
}  // namespace hmc::store
