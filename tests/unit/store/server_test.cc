#include "store/server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

#include "control/control.h"
#include "control/security.h"
#include "fakes/must.h"
#include "store/store.h"
#include "unit/store/waits.h"

namespace hmc::store {
namespace {

using test::must;

std::unique_ptr<Server> serve(const std::string& secret = "") {
  return must(Server::start("tcp://127.0.0.1:0", {.secret = secret}));
}

void waitForRemoval(Store& store, const std::string& key) {
  auto watch = must(store.watch(key));
  bool there = false;
  for (;;) {
    for (const Change& change : must(watch->next(kLong))) {
      if (change.kind == Change::Kind::set) there = true;
      if (change.kind == Change::Kind::removed) return;
      if (change.kind == Change::Kind::current && !there) return;
    }
  }
}

TEST(StoreServer, AnAddressInUseIsRefused) {
  auto server = serve();
  EXPECT_EQ(Server::start(server->address(), {}).status().code(), Code::alreadyExists);
  EXPECT_EQ(Server::start("http://x", {}).status().code(), Code::invalidArgument);
}

TEST(StoreServer, AWrongSecretIsRefusedAtOnce) {
  auto server = serve("right");
  for (const char* secret : {"wrong", ""}) {
    EXPECT_EQ(openStore(server->address(), {.secret = secret}, kLong).status().code(),
              Code::permissionDenied);
  }
  EXPECT_TRUE(openStore(server->address(), {.secret = "right"}, kLong).ok());
}

TEST(StoreServer, AnAddressThatIsNoneIsRefusedAtOnce) {
  for (const char* address :
       {"", "tcp://", "tcp://127.0.0.1", "etcd://", "http://127.0.0.1:1", "x"}) {
    EXPECT_EQ(openStore(address, {}, kLong).status().code(), Code::invalidArgument) << address;
  }
}

// Somebody else's listener that speaks the same handshake.
class NoStore : public control::ControlEvents {
 public:
  NoStore() {
    control::ControlOptions options;
    EXPECT_TRUE(control::addDefaults(options, {}).ok());
    control = must(control::Control::create(options, *this));
  }
  Status joined(const std::shared_ptr<control::Channel>&) override { return Status(); }
  Status joinedAgain(const std::shared_ptr<control::Channel>&, const std::string&) override {
    return Status();
  }
  void left(const std::shared_ptr<control::Channel>&, const Status&) override {}
  void answer(const std::shared_ptr<control::Channel>&, uint16_t, std::string_view,
              control::Channel::Answered) override {}
  void note(const std::shared_ptr<control::Channel>&, std::string) override {}

  std::unique_ptr<control::Control> control;
};

TEST(StoreServer, WhatIsNoStoreIsNotTakenForOne) {
  NoStore stranger;
  const std::string address = must(stranger.control->listen("tcp://127.0.0.1:0"));
  EXPECT_EQ(openStore(address, {}, kLong).status().code(), Code::unsupported);
  auto server = serve();
  EXPECT_EQ(stranger.control->connect(server->address(), "", kLong).status().code(),
            Code::unsupported);
  EXPECT_TRUE(openStore(server->address(), {}, kLong).ok());
}

TEST(StoreServer, OpeningWaitsForAServerToComeAndGivesUpAtTheDeadline) {
  std::string address = serve()->address();
  const Status status = openStore(address, {}, kShort).status();
  EXPECT_EQ(status.code(), Code::deadlineExceeded);
  EXPECT_NE(status.message().find(address), std::string::npos) << status.message();
  std::unique_ptr<Server> server;
  auto opened = std::thread([&] { EXPECT_TRUE(openStore(address, {}, kLong).ok()); });
  server = must(Server::start(address, {}));
  opened.join();
}

TEST(StoreServer, TheKeysOfAProcessThatIsKilledGoAfterItsLease) {
  int toChild[2];
  ASSERT_EQ(pipe(toChild), 0);
  const pid_t child = fork();
  if (child == 0) {
    char address[256] = {};
    if (read(toChild[0], address, sizeof(address) - 1) <= 0) _exit(1);
    auto store = must(openStore(address, {}, kLong));
    auto lease = must(store->lease(std::chrono::milliseconds(300), kLong));
    if (!store->set("held", "by the child", kLong, lease).ok()) _exit(2);
    for (;;) pause();
  }
  auto server = serve();
  const std::string& address = server->address();
  ASSERT_EQ(write(toChild[1], address.data(), address.size()),
            static_cast<ssize_t>(address.size()));
  auto store = must(openStore(address, {}, kLong));
  EXPECT_EQ(must(store->await("held", kLong)), "by the child");
  kill(child, SIGKILL);
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  waitForRemoval(*store, "held");
  store.reset();
  EXPECT_TRUE(server->awaitNoClients(kLong));
  close(toChild[0]);
  close(toChild[1]);
}

TEST(StoreServer, CountsWhatItIsAsked) {
  auto server = serve();
  auto store = must(openStore(server->address(), {}, kLong));
  const uint64_t before = server->requests();
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(store->set("key", "value", kLong).ok());
  EXPECT_FALSE(store->get("none", kLong).ok());
  EXPECT_EQ(server->requests() - before, 4U);
}

TEST(StoreServer, AwaitsTheEndOfItsClients) {
  auto server = serve();
  EXPECT_TRUE(server->awaitNoClients(kLong));
  auto store = must(openStore(server->address(), {}, kLong));
  auto lease = must(store->lease(kLong, kLong));
  ASSERT_TRUE(store->set("held", "1", kLong, lease).ok());
  EXPECT_FALSE(server->awaitNoClients(kShort));
  std::thread ending([&] {
    lease.reset();
    store.reset();
  });
  EXPECT_TRUE(server->awaitNoClients(kLong));
  ending.join();
}

TEST(StoreServer, AForkedChildDoesNotAwaitItsParentsClients) {
  auto server = serve();
  const auto store = must(openStore(server->address(), {}, kLong));
  const pid_t child = fork();
  if (child == 0) {
    alarm(30);
    _exit(server->awaitNoClients(Deadline::never()) ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST(StoreServer, ALeaseLastsAsLongAsItsClientAndNoLonger) {
  auto server = serve();
  auto store = must(openStore(server->address(), {}, kLong));
  auto mine = must(openStore(server->address(), {}, kLong));
  constexpr std::chrono::milliseconds kTtl{150};
  auto lease = must(mine->lease(kTtl, kLong));
  ASSERT_TRUE(mine->set("held", "1", kLong, lease).ok());
  auto watch = must(store->watch("held"));
  while (must(watch->next(kLong)).back().kind != Change::Kind::current) {
  }
  // Far longer than the lease without upkeep.
  EXPECT_EQ(watch->next(6 * kTtl).status().code(), Code::deadlineExceeded);
  EXPECT_TRUE(lease->status().ok());
  lease.reset();
  mine.reset();
  EXPECT_EQ(must(watch->next(kLong)).front().kind, Change::Kind::removed);
}

TEST(StoreServer, ManyClientsComeAndGo) {
  auto server = serve();
  auto watcher = must(openStore(server->address(), {}, kLong));
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&, thread] {
      for (int round = 0; round < 10; ++round) {
        auto store = must(openStore(server->address(), {}, kLong));
        auto lease = must(store->lease(kLong, kLong));
        const std::string key = fmt::format("c/{}/{}", thread, round);
        EXPECT_TRUE(store->set(key, "x", kLong, lease).ok());
        auto watch = must(store->watch(key));
        EXPECT_EQ(must(watch->next(kLong)).front().entry.key, key);
      }
    });
  }
  for (auto& thread : threads) thread.join();
  auto watch = must(watcher->watch("c/"));
  size_t there = 0;
  for (bool current = false; !current || there > 0;) {
    for (const Change& change : must(watch->next(kLong))) {
      if (change.kind == Change::Kind::set) ++there;
      if (change.kind == Change::Kind::removed) --there;
      if (change.kind == Change::Kind::current) current = true;
    }
  }
}

TEST(StoreServer, TheCallsOfAChildAfterForkAreRefused) {
  auto server = serve();
  auto store = must(openStore(server->address(), {}, kLong));
  auto lease = must(store->lease(kLong, kLong));
  auto watch = must(store->watch(""));
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);
    const bool refused = store->get("key", kLong).status().code() == Code::invalidArgument &&
                         !store->watch("x").ok() && !watch->next(kLong).ok();
    watch.reset();
    lease.reset();
    store.reset();
    server.reset();
    _exit(refused ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(store->set("key", "x", kLong, lease).ok());
}

TEST(StoreServer, AStoreThatIsFullSaysSo) {
  auto server = must(Server::start("tcp://127.0.0.1:0", {.capacity = 100}));
  auto store = must(openStore(server->address(), {}, kLong));
  EXPECT_EQ(store->set("key", std::string(100, 'x'), kLong).code(), Code::exhausted);
  EXPECT_TRUE(store->set("key", std::string(97, 'x'), kLong).ok());
}

}  // namespace
}  // namespace hmc::store
