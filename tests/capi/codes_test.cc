// Every code of smem_codes.h by a call that returns it, and calls that must not crash.

#include <gtest/gtest.h>
#include <smem_bm.h>
#include <smem_shm.h>

#include <string>
#include <vector>

#include "last_error.h"
#include "smem_ranks.h"

namespace hmc::test {
namespace {

using testing::HasSubstr;

smem_bm_config_t bmConfig(uint32_t seconds = 60) {
  smem_bm_config_t config;
  EXPECT_EQ(smem_bm_config_init(&config), 0);
  config.initTimeout = config.createTimeout = config.controlOperationTimeout = seconds;
  config.rankId = 0;
  return config;
}

smem_shm_config_t shmConfig(uint32_t seconds = 60) {
  smem_shm_config_t config;
  EXPECT_EQ(smem_shm_config_init(&config), 0);
  config.shmInitTimeout = config.shmCreateTimeout = config.controlOperationTimeout = seconds;
  return config;
}

// A world of one rank.
class Codes : public testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(smem_init(0), 0); }
  void TearDown() override { smem_uninit(); }

  void startBm(uint32_t world = 1) {
    auto config = bmConfig();
    ASSERT_EQ(smem_bm_init(url_.c_str(), world, 0, &config), 0) << said();
  }
  smem_bm_t joined(uint64_t dram, uint64_t hbm, uint32_t id = 0) {
    smem_bm_t pool = smem_bm_create(id, 0, SMEMB_DATA_OP_SDMA, dram, hbm, 0);
    EXPECT_NE(pool, nullptr) << said();
    void* slot = nullptr;
    EXPECT_EQ(smem_bm_join(pool, 0, &slot), 0) << said();
    EXPECT_NE(slot, nullptr);
    return pool;
  }

  std::string url_ = freeUrl();
};

TEST_F(Codes, defaultsAreTheDocumentedOnes) {
  smem_bm_config_t bm;
  ASSERT_EQ(smem_bm_config_init(&bm), 0);
  EXPECT_EQ(bm.initTimeout, 120);
  EXPECT_EQ(bm.createTimeout, 120);
  EXPECT_EQ(bm.controlOperationTimeout, 120);
  EXPECT_TRUE(bm.startConfigStore);
  EXPECT_FALSE(bm.startConfigStoreOnly);
  EXPECT_FALSE(bm.dynamicWorldSize);
  EXPECT_TRUE(bm.unifiedAddressSpace);
  EXPECT_FALSE(bm.autoRanking);
  EXPECT_EQ(bm.rankId, 65535);
  EXPECT_EQ(bm.flags, 0);
  smem_shm_config_t shm;
  ASSERT_EQ(smem_shm_config_init(&shm), 0);
  EXPECT_EQ(shm.shmInitTimeout, 120);
  EXPECT_EQ(shm.shmCreateTimeout, 120);
  EXPECT_EQ(shm.controlOperationTimeout, 120);
  EXPECT_TRUE(shm.startConfigStore);
  EXPECT_EQ(shm.flags, 0);
  EXPECT_EQ(smem_bm_config_init(nullptr), SMEM_INVALID_PARAM);
  EXPECT_EQ(smem_shm_config_init(nullptr), SMEM_INVALID_PARAM);
}

TEST_F(Codes, beforeInitIsNotInitialized) {
  smem_uninit();
  auto bm = bmConfig();
  auto shm = shmConfig();
  void* out = nullptr;
  char byte = 0;
  EXPECT_EQ(smem_bm_init(url_.c_str(), 1, 0, &bm), SMEM_NOT_INITIALIZED);
  EXPECT_THAT(said(), HasSubstr("smem_init"));
  EXPECT_EQ(smem_shm_init(url_.c_str(), 1, 0, 0, &shm), SMEM_NOT_INITIALIZED);
  ASSERT_EQ(smem_init(0), 0);
  EXPECT_EQ(smem_bm_get_rank_id(), UINT32_MAX);
  EXPECT_EQ(smem_bm_create(0, 0, SMEMB_DATA_OP_SDMA, 0, 2 * kMiB, 0), nullptr);
  EXPECT_THAT(said(), HasSubstr("smem_bm_init"));
  EXPECT_EQ(smem_bm_join(nullptr, 0, &out), SMEM_NOT_INITIALIZED);
  EXPECT_EQ(smem_bm_leave(nullptr, 0), SMEM_NOT_INITIALIZED);
  EXPECT_EQ(smem_bm_copy(nullptr, &byte, &byte, 1, SMEMB_COPY_H2G, 0), SMEM_NOT_INITIALIZED);
  EXPECT_EQ(smem_bm_get_local_mem_size(nullptr), 0);
  EXPECT_EQ(smem_bm_ptr(nullptr, 0), nullptr);
  EXPECT_EQ(smem_shm_create(0, 1, 0, 2 * kMiB, SMEMS_DATA_OP_MTE, 0, &out), nullptr);
  EXPECT_THAT(said(), HasSubstr("smem_shm_init"));
  EXPECT_EQ(smem_shm_control_barrier(nullptr), SMEM_NOT_INITIALIZED);
  EXPECT_EQ(smem_shm_destroy(nullptr, 0), SMEM_NOT_INITIALIZED);
  EXPECT_EQ(smem_shm_get_global_rank(nullptr), UINT32_MAX);
  EXPECT_EQ(smem_shm_get_global_rank_size(nullptr), UINT32_MAX);
  smem_bm_destroy(nullptr);
}

// Each URL, and the part of the sentence that says what is wrong with it.
TEST_F(Codes, urlsAreCheckedPartByPart) {
  const std::pair<const char*, const char*> cases[] = {
      {"127.0.0.1:7000", "tcp://"},          {"udp://127.0.0.1:7000", "tcp://"},
      {"tcp://127.0.0.1", "port"},           {"tcp://127.0.0.1:", "port \"\""},
      {"tcp://127.0.0.1:1024", "1024"},      {"tcp://127.0.0.1:65536", "65536"},
      {"tcp://127.0.0.1:70x", "70x"},        {"tcp://0.0.0.0:7000", "0.0.0.0"},
      {"tcp://localhost:7000", "localhost"}, {"tcp://1.2.3:7000", "1.2.3"},
      {"tcp://:7000", "no IP address"},      {"", "tcp://"},
  };
  for (const auto& [url, why] : cases) {
    auto bm = bmConfig();
    EXPECT_EQ(smem_bm_init(url, 1, 0, &bm), SMEM_INVALID_PARAM) << url;
    EXPECT_THAT(said(), HasSubstr(why)) << url;
    auto shm = shmConfig();
    EXPECT_EQ(smem_shm_init(url, 1, 0, 0, &shm), SMEM_INVALID_PARAM) << url;
  }
}

TEST_F(Codes, argumentsOfInitAreChecked) {
  auto good = bmConfig();
  EXPECT_EQ(smem_bm_init(nullptr, 1, 0, &good), SMEM_INVALID_PARAM);
  EXPECT_EQ(smem_bm_init(url_.c_str(), 1, 0, nullptr), SMEM_INVALID_PARAM);
  EXPECT_EQ(smem_bm_init(url_.c_str(), 0, 0, &good), SMEM_INVALID_PARAM);
  EXPECT_EQ(smem_bm_init(url_.c_str(), 65536, 0, &good), SMEM_INVALID_PARAM);
  auto config = bmConfig();
  config.rankId = 1;
  EXPECT_EQ(smem_bm_init(url_.c_str(), 1, 0, &config), SMEM_INVALID_PARAM);
  EXPECT_THAT(said(), HasSubstr("rankId 1"));
  for (auto field : {&smem_bm_config_t::initTimeout, &smem_bm_config_t::createTimeout,
                     &smem_bm_config_t::controlOperationTimeout}) {
    config = bmConfig();
    config.*field = 0;
    EXPECT_EQ(smem_bm_init(url_.c_str(), 1, 0, &config), SMEM_INVALID_PARAM);
    EXPECT_THAT(said(), HasSubstr("Timeout is 0"));
  }
  config = bmConfig();
  config.unifiedAddressSpace = false;
  EXPECT_EQ(smem_bm_init(url_.c_str(), 1, 0, &config), SMEM_INVALID_PARAM);
  auto shm = shmConfig();
  EXPECT_EQ(smem_shm_init(url_.c_str(), 2, 2, 0, &shm), SMEM_INVALID_PARAM);
  EXPECT_EQ(smem_shm_init(url_.c_str(), 1, 0, 0, nullptr), SMEM_INVALID_PARAM);
  shm.controlOperationTimeout = 0;
  EXPECT_EQ(smem_shm_init(url_.c_str(), 1, 0, 0, &shm), SMEM_INVALID_PARAM);
}

TEST_F(Codes, aStoreThatIsNotThereIsATimeout) {
  auto config = bmConfig(1);
  config.rankId = 1;
  EXPECT_EQ(smem_bm_init(url_.c_str(), 2, 0, &config), SMEM_TIMEOUT) << said();
  auto shm = shmConfig(1);
  EXPECT_EQ(smem_shm_init(url_.c_str(), 2, 1, 0, &shm), SMEM_TIMEOUT) << said();
  startBm();  // a failed init leaves nothing behind
}

TEST_F(Codes, anAddressOfAnotherHostCannotBeServed) {
  auto config = bmConfig(1);
  EXPECT_EQ(smem_bm_init("tcp://192.0.2.1:7000", 2, 0, &config), SMEM_NEW_OBJECT_FAILED) << said();
}

TEST_F(Codes, initMayBeRepeatedAndIgnoresItsArguments) {
  EXPECT_EQ(smem_init(0), 0);
  startBm();
  auto config = bmConfig();
  EXPECT_EQ(smem_bm_init("nonsense", 99, 0, &config), 0);
  EXPECT_EQ(smem_bm_get_rank_id(), 0);
}

// 25: upstream kept the old store and rank.
TEST_F(Codes, uninitAndInitAgainStartsAfresh) {
  for (int i = 0; i < 3; ++i) {
    startBm(2);
    smem_bm_t pool = joined(0, 2 * kMiB);
    char byte = 'x';
    EXPECT_EQ(smem_bm_copy(pool, &byte, smem_bm_ptr(pool, 0), 1, SMEMB_COPY_H2G, 0), 0) << said();
    smem_bm_uninit(0);
    EXPECT_EQ(smem_bm_get_rank_id(), UINT32_MAX);
    EXPECT_EQ(smem_bm_copy(pool, &byte, &byte, 1, SMEMB_COPY_H2G, 0), SMEM_NOT_INITIALIZED);
    if (i == 1) url_ = freeUrl();
    if (i == 2) smem_uninit();
  }
  ASSERT_EQ(smem_init(0), 0);
  startBm(2);
}

TEST_F(Codes, staleAndInventedHandlesAreRefused) {
  startBm();
  smem_bm_t pool = joined(0, 2 * kMiB);
  char byte = 0;
  smem_bm_destroy(pool);
  smem_bm_destroy(pool);
  void* out = nullptr;
  std::vector<smem_bm_t> bad = {nullptr, pool, &byte, reinterpret_cast<void*>(UINTPTR_MAX)};
  smem_bm_t next = joined(0, 2 * kMiB);
  EXPECT_NE(next, pool);
  for (smem_bm_t handle : bad) {
    EXPECT_EQ(smem_bm_join(handle, 0, &out), SMEM_INVALID_PARAM);
    EXPECT_EQ(smem_bm_leave(handle, 0), SMEM_INVALID_PARAM);
    EXPECT_EQ(smem_bm_copy(handle, &byte, &byte, 1, SMEMB_COPY_H2G, 0), SMEM_INVALID_PARAM);
    EXPECT_EQ(smem_bm_copy_2d(handle, &byte, 1, &byte, 1, 1, 1, SMEMB_COPY_H2G, 0),
              SMEM_INVALID_PARAM);
    EXPECT_EQ(smem_bm_ptr(handle, 0), nullptr);
    EXPECT_EQ(smem_bm_get_local_mem_size(handle), 0);
    EXPECT_THAT(said(), HasSubstr("no pool with the handle"));
  }
}

TEST_F(Codes, poolsAreMadeOnce) {
  startBm();
  EXPECT_EQ(smem_bm_create(5, 0, SMEMB_DATA_OP_SDMA, 0, 0, 0), nullptr);
  EXPECT_THAT(said(), HasSubstr("both sizes are 0"));
  // 9: upstream's failed create leaked, and its id was taken for ever.
  EXPECT_EQ(smem_bm_create(5, 0, SMEMB_DATA_OP_SDMA, 0, uint64_t{1} << 45, 0), nullptr);
  EXPECT_FALSE(said().empty());
  smem_bm_t pool = joined(0, 2 * kMiB, 5);
  EXPECT_EQ(smem_bm_create(5, 0, SMEMB_DATA_OP_SDMA, 0, 2 * kMiB, 0), nullptr);
  EXPECT_THAT(said(), HasSubstr("pool 5 already"));
  smem_bm_destroy(pool);
  smem_bm_destroy(joined(0, 2 * kMiB, 5));
}

// 25: DRAM alone divided by zero, and so would sizes that are no multiple of 2 MiB have.
TEST_F(Codes, slotsLieWhereTheSizesSay) {
  startBm(4);
  smem_bm_t dram = joined(2 * kMiB, 0, 1);
  EXPECT_EQ(smem_bm_get_local_mem_size(dram), 2 * kMiB);
  auto* base = static_cast<char*>(smem_bm_ptr(dram, 0));
  EXPECT_EQ(smem_bm_ptr(dram, 3), base + 6 * kMiB);
  EXPECT_EQ(smem_bm_ptr(dram, 4), nullptr);
  EXPECT_THAT(said(), HasSubstr("rank 4"));
  smem_bm_t odd = joined(0, 3 * kMiB + 1, 2);
  EXPECT_EQ(smem_bm_get_local_mem_size(odd), 4 * kMiB);
  EXPECT_EQ(smem_bm_ptr(odd, 1), static_cast<char*>(smem_bm_ptr(odd, 0)) + 4 * kMiB);
  smem_bm_t both = joined(2 * kMiB, 4 * kMiB, 3);
  EXPECT_EQ(smem_bm_get_local_mem_size(both), 4 * kMiB);
  EXPECT_EQ(smem_bm_ptr(both, 1), static_cast<char*>(smem_bm_ptr(both, 0)) + 4 * kMiB);
}

TEST_F(Codes, copiesBeforeJoinAndAfterLeaveAreNotStarted) {
  startBm();
  smem_bm_t pool = smem_bm_create(0, 0, SMEMB_DATA_OP_SDMA, 0, 2 * kMiB, 0);
  ASSERT_NE(pool, nullptr) << said();
  char byte = 0;
  void* const at = smem_bm_ptr(pool, 0);
  ASSERT_NE(at, nullptr);
  EXPECT_EQ(smem_bm_copy(pool, &byte, at, 1, SMEMB_COPY_H2G, 0), SMEM_NOT_STARTED);
  EXPECT_EQ(smem_bm_leave(pool, 0), SMEM_NOT_STARTED);
  EXPECT_EQ(smem_bm_join(pool, 0, nullptr), SMEM_INVALID_PARAM);
  void* slot = nullptr;
  EXPECT_EQ(smem_bm_join(pool, 0, &slot), 0) << said();
  EXPECT_EQ(smem_bm_join(pool, 0, &slot), 0) << said();
  EXPECT_EQ(smem_bm_copy(pool, &byte, at, 1, SMEMB_COPY_H2G, 0), 0) << said();
  EXPECT_EQ(smem_bm_leave(pool, 0), 0) << said();
  EXPECT_EQ(smem_bm_copy(pool, &byte, at, 1, SMEMB_COPY_H2G, 0), SMEM_NOT_STARTED);
  // What was there before we left is there when we come back.
  EXPECT_EQ(smem_bm_join(pool, 0, &slot), 0) << said();
  EXPECT_EQ(smem_bm_copy(pool, at, &byte, 1, SMEMB_COPY_G2H, 0), 0) << said();
}

// 25: upstream refused the last byte of the pool.
TEST_F(Codes, theLastByteIsInRangeAndTheNextIsNot) {
  startBm();
  smem_bm_t pool = joined(0, 2 * kMiB);
  auto* const slot = static_cast<char*>(smem_bm_ptr(pool, 0));
  char byte = 'z';
  char got = 0;
  EXPECT_EQ(smem_bm_copy(pool, &byte, slot + 2 * kMiB - 1, 1, SMEMB_COPY_H2G, 0), 0) << said();
  EXPECT_EQ(smem_bm_copy(pool, slot + 2 * kMiB - 1, &got, 1, SMEMB_COPY_G2H, 0), 0) << said();
  EXPECT_EQ(got, 'z');
  std::vector<char> two(2);
  EXPECT_EQ(smem_bm_copy(pool, two.data(), slot + 2 * kMiB - 1, 2, SMEMB_COPY_H2G, 0),
            SMEM_INVALID_PARAM);
  EXPECT_THAT(said(), HasSubstr("pass the end"));
  EXPECT_EQ(smem_bm_copy(pool, &byte, slot + 2 * kMiB, 1, SMEMB_COPY_H2G, 0), SMEM_INVALID_PARAM);
  std::vector<char> rows(64);
  EXPECT_EQ(
      smem_bm_copy_2d(pool, rows.data(), 32, slot + 2 * kMiB - 63, 32, 32, 2, SMEMB_COPY_H2G, 0),
      SMEM_INVALID_PARAM);
}

TEST_F(Codes, argumentsOfCopiesAreChecked) {
  startBm();
  smem_bm_t pool = joined(0, 2 * kMiB);
  auto* const slot = static_cast<char*>(smem_bm_ptr(pool, 0));
  char byte = 0;
  EXPECT_EQ(smem_bm_copy(pool, nullptr, slot, 1, SMEMB_COPY_H2G, 0), SMEM_INVALID_PARAM);
  EXPECT_EQ(smem_bm_copy(pool, &byte, nullptr, 1, SMEMB_COPY_H2G, 0), SMEM_INVALID_PARAM);
  EXPECT_EQ(smem_bm_copy(pool, &byte, slot, 0, SMEMB_COPY_H2G, 0), SMEM_INVALID_PARAM);
  EXPECT_EQ(smem_bm_copy(pool, &byte, slot, 1, static_cast<smem_bm_copy_type>(10), 0),
            SMEM_INVALID_PARAM);
  EXPECT_THAT(said(), HasSubstr("10 is no type"));
  EXPECT_EQ(smem_bm_copy_2d(pool, &byte, 1, slot, 1, 2, 1, SMEMB_COPY_H2G, 0), SMEM_INVALID_PARAM);
  EXPECT_EQ(smem_bm_copy_2d(pool, &byte, 4, slot, 4, 0, 1, SMEMB_COPY_H2G, 0), SMEM_INVALID_PARAM);
  EXPECT_EQ(smem_bm_copy_2d(pool, &byte, 4, slot, 4, 1, 0, SMEMB_COPY_H2G, 0), SMEM_INVALID_PARAM);
  for (uint64_t rows : {uint64_t{1} << 40, UINT64_MAX}) {
    EXPECT_EQ(smem_bm_copy_2d(pool, &byte, 4, slot, 4, 1, rows, SMEMB_COPY_H2G, 0),
              SMEM_INVALID_PARAM);
    EXPECT_THAT(said(), HasSubstr("pass the end"));
  }
}

TEST_F(Codes, aTypeThatTheAddressesAreNotOfIsExplained) {
  startBm();
  smem_bm_t pool = joined(0, 2 * kMiB);
  auto* const slot = static_cast<char*>(smem_bm_ptr(pool, 0));
  char byte = 0;
  EXPECT_EQ(smem_bm_copy(pool, &byte, slot, 1, SMEMB_COPY_G2H, 0), SMEM_INVALID_PARAM);
  EXPECT_THAT(said(), HasSubstr("SMEMB_COPY_G2H copies from a slot"));
  EXPECT_THAT(said(), HasSubstr("is host memory of this process"));
  EXPECT_THAT(said(), HasSubstr("is in rank 0's device slot"));
  EXPECT_EQ(smem_bm_copy(pool, slot, &byte, 1, SMEMB_COPY_H2G, 0), SMEM_INVALID_PARAM);
  EXPECT_EQ(smem_bm_copy(pool, &byte, &byte, 1, SMEMB_COPY_L2G, 0), SMEM_INVALID_PARAM);
}

TEST_F(Codes, aRankThatIsNotHereDoesNotExist) {
  startBm(2);
  smem_bm_t pool = joined(0, 2 * kMiB);
  char byte = 0;
  EXPECT_EQ(smem_bm_copy(pool, &byte, smem_bm_ptr(pool, 1), 1, SMEMB_COPY_H2G, 0),
            SMEM_OBJECT_NOT_EXISTS);
  EXPECT_THAT(said(), HasSubstr("rank 1"));
}

TEST_F(Codes, aRankOfTwoProcessesIsDuplicated) {
  startBm(2);
  smem_bm_t pool = joined(0, 2 * kMiB);
  SmemRank other;
  Reply reply = other.ask("bm " + url_ + " 2 0 0 2");
  EXPECT_TRUE(reply.ok) << reply;
  EXPECT_TRUE(other.ask("create 0 0 2097152").ok);
  reply = other.ask("join 0");
  EXPECT_EQ(reply.code, std::to_string(SMEM_DUPLICATED_OBJECT)) << reply;
  // 6: upstream's peers ignored a rank that tried again.
  smem_bm_destroy(pool);
  reply = other.ask("join 0");
  EXPECT_TRUE(reply.ok) << reply;
}

}  // namespace
}  // namespace hmc::test
