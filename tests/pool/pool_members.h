#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "process/netns.h"
#include "process/process.h"

namespace hmc::test {

inline constexpr size_t kMiB = size_t{1} << 20;

// A process of pool_peer.cc.
class PoolMember : public Process {
 public:
  explicit PoolMember(const Environment& environment = {})
      : Process({HMC_TEST_POOL_PEER}, environment) {}
  PoolMember(const std::string& netns, const Environment& environment = {})
      : Process({"/sbin/ip", "netns", "exec", netns, HMC_TEST_POOL_PEER}, environment) {}
  // Whatever happened to it, one that was not killed ends by itself and cleanly.
  ~PoolMember() {
    if (!runs()) return;
    EXPECT_EQ(finish(), 0);
  }
  Reply join(const std::string& store, const std::string& options) {
    return ask("join " + store + " " + options);
  }
};

// A store in a process of its own, and members that join it.
class PoolTest : public testing::Test {
 protected:
  void SetUp() override { startStore("tcp://127.0.0.1:0"); }
  void startStore(const std::string& address) {
    keeper_ = std::make_unique<PoolMember>();
    const Reply started = keeper_->ask("store " + address);
    ASSERT_TRUE(started.ok) << started;
    store_ = started.text;
  }

  // Joins and expects that rank.
  PoolMember& member(uint32_t rank, const std::string& options,
                     const Process::Environment& environment = {}) {
    members_.push_back(std::make_unique<PoolMember>(environment));
    const Reply joined = members_.back()->join(store_, options);
    EXPECT_TRUE(joined.ok) << joined;
    EXPECT_EQ(joined.text, std::to_string(rank));
    return *members_.back();
  }

  // Until the store knows of that many. A member hears of a death on its own host before the store
  // does, and until then the dead one's rank is taken.
  void awaitMembers(PoolMember& by, size_t count) {
    expectOk(by.ask("await " + store_ + " " + std::to_string(count)));
  }

  static void expectOk(const Reply& reply, const std::string& text = "") {
    EXPECT_TRUE(reply.ok) << reply;
    EXPECT_EQ(reply.text, text);
  }

  std::string store_;
  std::unique_ptr<PoolMember> keeper_;
  std::vector<std::unique_ptr<PoolMember>> members_;
};

}  // namespace hmc::test
