// Threads of one process in the C interface at the same time.

#include <gtest/gtest.h>
#include <smem_bm.h>
#include <smem_shm.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "smem_ranks.h"

namespace hmc::test {
namespace {

using testing::AnyOf;

constexpr uint32_t kSeconds = 60;

int32_t startBm(const std::string& url, uint32_t world = 1) {
  smem_bm_config_t config;
  smem_bm_config_init(&config);
  config.initTimeout = config.createTimeout = config.controlOperationTimeout = kSeconds;
  config.rankId = 0;
  return smem_bm_init(url.c_str(), world, 0, &config);
}

int32_t startShm(const std::string& url, uint32_t world = 1, uint32_t rank = 0) {
  smem_shm_config_t config;
  smem_shm_config_init(&config);
  config.shmInitTimeout = config.shmCreateTimeout = config.controlOperationTimeout = kSeconds;
  return smem_shm_init(url.c_str(), world, rank, 0, &config);
}

// A thread of ours that sleeps in the kernel.
bool sleeps(pid_t thread) {
  std::ifstream file("/proc/self/task/" + std::to_string(thread) + "/stat");
  std::string text;
  std::getline(file, text);
  const size_t name = text.rfind(')');
  return name != std::string::npos && text.substr(name + 2, 1) == "S";
}

class Threads : public testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(smem_init(0), 0); }
  void TearDown() override { smem_uninit(); }

  const std::string url_ = freeUrl();
};

TEST_F(Threads, startAndEndTogether) {
  for (int i = 0; i < 5; ++i) {
    std::thread other([&] { EXPECT_EQ(startShm(url_), 0) << smem_get_last_err_msg(); });
    EXPECT_EQ(startBm(url_), 0) << smem_get_last_err_msg();
    other.join();
    std::thread ending([] { smem_shm_uninit(0); });
    smem_bm_uninit(0);
    ending.join();
    EXPECT_EQ(smem_bm_get_rank_id(), UINT32_MAX);
    void* base = nullptr;
    EXPECT_EQ(smem_shm_create(0, 1, 0, 2 * kMiB, SMEMS_DATA_OP_MTE, 0, &base), nullptr);
  }
}

// A pool that another thread is making when all of them end goes as well.
TEST_F(Threads, makePoolsWhileOthersEndThem) {
  for (int i = 0; i < 5; ++i) {
    ASSERT_EQ(startBm(url_), 0) << smem_get_last_err_msg();
    std::atomic<bool> made{false};
    std::thread maker([&] {
      std::vector<smem_bm_t> pools;
      for (uint32_t id = 0; id < 3; ++id) {
        pools.push_back(smem_bm_create(id, 0, SMEMB_DATA_OP_SDMA, 0, 2 * kMiB, 0));
        made.store(true);
        void* slot = nullptr;
        char byte = 'x';
        if (smem_bm_join(pools.back(), 0, &slot) == 0)
          (void)smem_bm_copy(pools.back(), &byte, slot, 1, SMEMB_COPY_H2G, 0);
      }
    });
    while (!made.load()) std::this_thread::yield();
    smem_bm_uninit(0);
    maker.join();
    // Whatever came after the end was refused: nothing is left that has an id.
    ASSERT_EQ(startBm(url_), 0) << smem_get_last_err_msg();
    for (uint32_t id = 0; id < 3; ++id) {
      smem_bm_t again = smem_bm_create(id, 0, SMEMB_DATA_OP_SDMA, 0, 2 * kMiB, 0);
      EXPECT_NE(again, nullptr) << smem_get_last_err_msg();
    }
    smem_bm_uninit(0);
  }
}

TEST_F(Threads, joinAndLeaveOnePoolTogether) {
  ASSERT_EQ(startBm(url_), 0) << smem_get_last_err_msg();
  smem_bm_t pool = smem_bm_create(0, 0, SMEMB_DATA_OP_SDMA, 0, 2 * kMiB, 0);
  ASSERT_NE(pool, nullptr) << smem_get_last_err_msg();
  auto churn = [pool] {
    for (int i = 0; i < 5; ++i) {
      void* slot = nullptr;
      EXPECT_EQ(smem_bm_join(pool, 0, &slot), 0) << smem_get_last_err_msg();
      EXPECT_THAT(smem_bm_leave(pool, 0), AnyOf(0, SMEM_NOT_STARTED, SMEM_ERROR));
    }
  };
  std::thread other(churn);
  churn();
  other.join();
  void* slot = nullptr;
  EXPECT_EQ(smem_bm_join(pool, 0, &slot), 0) << smem_get_last_err_msg();
  EXPECT_EQ(smem_bm_leave(pool, 0), 0) << smem_get_last_err_msg();
}

// Another rank does not come: only the end of the object can end the barrier this soon.
TEST_F(Threads, endABarrierThatAnotherIsIn) {
  SmemRank other;
  other.say("shm " + url_ + " 2 0");
  ASSERT_EQ(startShm(url_, 2, 1), 0) << smem_get_last_err_msg();
  ASSERT_TRUE(other.answer().ok);
  for (bool everything : {false, true}) {
    other.say("object 0 2 0 2097152");
    void* base = nullptr;
    smem_shm_t object = smem_shm_create(0, 2, 1, 2 * kMiB, SMEMS_DATA_OP_MTE, 0, &base);
    ASSERT_NE(object, nullptr) << smem_get_last_err_msg();
    ASSERT_TRUE(other.answer().ok);
    std::atomic<pid_t> inside{0};
    std::thread waiting([&] {
      inside.store(static_cast<pid_t>(syscall(SYS_gettid)));
      EXPECT_EQ(smem_shm_control_barrier(object), SMEM_ERROR);
      EXPECT_NE(std::string(smem_get_last_err_msg()).find("destroys"), std::string::npos);
    });
    EXPECT_TRUE(eventually([&] { return inside.load() != 0 && sleeps(inside.load()); }));
    const auto began = std::chrono::steady_clock::now();
    if (everything) {
      smem_shm_uninit(0);
    } else {
      EXPECT_EQ(smem_shm_destroy(object, 0), 0);
    }
    waiting.join();
    EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(kSeconds / 2));
    EXPECT_TRUE(other.ask("drop 0").ok);
  }
}

}  // namespace
}  // namespace hmc::test
