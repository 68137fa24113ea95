// The later interface: sub-groups, numbers, exits, stores of their own, and what upstream got
// wrong.

#define SMEM_API_LEVEL 2
#include <gtest/gtest.h>
#include <smem_bm.h>
#include <smem_shm.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <future>
#include <string>
#include <vector>

#include "base/fd.h"
#include "fakes/certificates.h"
#include "last_error.h"
#include "smem_ranks.h"

namespace hmc::test {
namespace {

using testing::HasSubstr;

// A world of one rank, or more that are not here.
class Level2 : public testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(smem_init(0), 0); }
  void TearDown() override { smem_uninit(); }

  void startBm(uint32_t world = 1) {
    smem_bm_config_t config;
    ASSERT_EQ(smem_bm_config_init(&config), 0);
    ASSERT_EQ(smem_bm_init(url_.c_str(), world, 0, &config), 0) << said();
  }
  static smem_bm_t joined(const smem_bm_create_option_t& option, uint32_t id = 0) {
    smem_bm_t pool = smem_bm_create2(id, &option);
    EXPECT_NE(pool, nullptr) << said();
    EXPECT_EQ(smem_bm_join(pool, 0), 0) << said();
    return pool;
  }
  smem_shm_t object() {
    smem_shm_config_t config;
    EXPECT_EQ(smem_shm_config_init(&config), 0);
    EXPECT_EQ(smem_shm_init(url_.c_str(), 1, 0, 0, &config), 0) << said();
    void* base = nullptr;
    smem_shm_t made = smem_shm_create(0, 1, 0, 2 * kMiB, SMEMS_DATA_OP_MTE, 0, &base);
    EXPECT_NE(made, nullptr) << said();
    return made;
  }

  const std::string url_ = freeUrl();
};

TEST_F(Level2, defaultsDifferFromLevelOne) {
  smem_bm_config_t config;
  ASSERT_EQ(smem_bm_config_init(&config), 0);
  EXPECT_TRUE(config.autoRanking);
  EXPECT_TRUE(config.startConfigStoreServer);
  EXPECT_EQ(config.initTimeout, 120);
  EXPECT_STREQ(config.hcomUrl, "");
}

// 11: upstream divided by what the rank itself brings, which may be nothing.
TEST_F(Level2, findsTheRankOfAnAddressByTheStride) {
  startBm(4);
  smem_bm_create_option_t option = {};
  option.maxDramSize = 4 * kMiB;
  option.maxHbmSize = 6 * kMiB;
  option.localHBMSize = 2 * kMiB;
  smem_bm_t pool = joined(option);
  EXPECT_EQ(smem_bm_get_local_mem_size_by_mem_type(pool, SMEM_MEM_TYPE_HOST), 0);
  EXPECT_EQ(smem_bm_get_local_mem_size_by_mem_type(pool, SMEM_MEM_TYPE_LOCAL_DEVICE), 2 * kMiB);
  auto* host = static_cast<char*>(smem_bm_ptr_by_mem_type(pool, SMEM_MEM_TYPE_HOST, 0));
  auto* device = static_cast<char*>(smem_bm_ptr_by_mem_type(pool, SMEM_MEM_TYPE_DEVICE, 0));
  EXPECT_EQ(smem_bm_ptr_by_mem_type(pool, SMEM_MEM_TYPE_HOST, 2), host + 8 * kMiB);
  EXPECT_EQ(smem_bm_ptr_by_mem_type(pool, SMEM_MEM_TYPE_DEVICE, 2), device + 12 * kMiB);
  EXPECT_EQ(smem_bm_get_rank_id_by_gva(pool, host + 8 * kMiB), 2);
  EXPECT_EQ(smem_bm_get_rank_id_by_gva(pool, host + 8 * kMiB - 1), 1);
  EXPECT_EQ(smem_bm_get_rank_id_by_gva(pool, device + 24 * kMiB - 1), 3);
  EXPECT_EQ(smem_bm_get_rank_id_by_gva(pool, &pool), UINT32_MAX);
  EXPECT_EQ(smem_bm_ptr_by_mem_type(pool, SMEM_MEM_TYPE_BUTT, 0), nullptr);
}

TEST_F(Level2, namesTheElementOfABatchThatIsWrong) {
  startBm();
  smem_bm_create_option_t option = {};
  option.localHBMSize = 2 * kMiB;
  smem_bm_t pool = joined(option);
  auto* slot = static_cast<char*>(smem_bm_ptr_by_mem_type(pool, SMEM_MEM_TYPE_DEVICE, 0));
  char bytes[2] = {'a', 'b'};
  void* from[] = {&bytes[0], &bytes[1]};
  void* to[] = {slot, &bytes[0]};
  const uint64_t sizes[] = {1, 1};
  smem_batch_copy_params batch = {from, to, sizes, 2};
  EXPECT_EQ(smem_bm_copy_batch(pool, &batch, SMEMB_COPY_H2G, 0), SMEM_INVALID_PARAM);
  EXPECT_THAT(said(), HasSubstr("element 1"));
  batch.batchSize = 0;
  EXPECT_EQ(smem_bm_copy_batch(pool, &batch, SMEMB_COPY_H2G, 0), SMEM_INVALID_PARAM);
  smem_copy_params both = {slot, slot + 4096, 64};
  EXPECT_EQ(smem_bm_copy(pool, &both, SMEMB_COPY_G2G, 0), 0) << said();
  EXPECT_EQ(smem_bm_copy(pool, &both, SMEMB_COPY_GH2H, 0), SMEM_INVALID_PARAM);
  EXPECT_EQ(smem_bm_wait(pool), 0);
}

// 14: upstream ended the user's own registration with the first copy, and a world of one crashed.
TEST_F(Level2, keepsARegistrationUntilItIsGivenBack) {
  startBm();
  smem_bm_create_option_t option = {};
  option.localDRAMSize = 2 * kMiB;
  smem_bm_t pool = joined(option);
  std::vector<char> bytes(8192, 'r');
  const auto address = reinterpret_cast<uint64_t>(bytes.data());
  EXPECT_EQ(smem_bm_register_user_mem(pool, address, bytes.size()), 0) << said();
  EXPECT_EQ(smem_bm_register_user_mem(pool, address, bytes.size()), 0) << said();
  EXPECT_NE(smem_bm_register_user_mem(pool, address, 1), 0);
  smem_copy_params copy = {bytes.data(), smem_bm_ptr_by_mem_type(pool, SMEM_MEM_TYPE_HOST, 0),
                           bytes.size()};
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(smem_bm_copy(pool, &copy, SMEMB_COPY_H2GH, ASYNC_COPY_FLAG), 0) << said();
  EXPECT_EQ(smem_bm_wait(pool), 0) << said();
  EXPECT_EQ(smem_bm_unregister_user_mem(pool, address), 0) << said();
  EXPECT_EQ(smem_bm_unregister_user_mem(pool, address), SMEM_OBJECT_NOT_EXISTS);
}

// 18: upstream's pool 64 met the entity of another interface.
TEST_F(Level2, anyIdIsAPoolOfItsOwn) {
  startBm();
  smem_bm_create_option_t option = {};
  option.localHBMSize = 2 * kMiB;
  for (uint32_t id : {0U, 63U, 64U, 129U, 255U, UINT32_MAX}) joined(option, id);
}

TEST_F(Level2, makesAHostSlotOfAFileOfTheCallers) {
  startBm();
  const Fd file(memfd_create("slot", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(ftruncate(file.get(), 2 * kMiB), 0);
  ASSERT_EQ(pwrite(file.get(), "before", 6, 100), 6);
  smem_bm_create_option_t option = {};
  option.localDRAMSize = 2 * kMiB;
  option.flags = SMEM_BM_FLAG_CREATE_WITH_SHM;
  option.dramShmFd = file.get();
  smem_bm_t pool = joined(option);
  auto* slot = static_cast<char*>(smem_bm_ptr_by_mem_type(pool, SMEM_MEM_TYPE_HOST, 0));
  ASSERT_NE(slot, nullptr) << said();
  EXPECT_EQ(std::string(slot + 100, 6), "before");
  const char after[] = "after";
  smem_copy_params copy{after, slot + 100, sizeof(after)};
  EXPECT_EQ(smem_bm_copy(pool, &copy, SMEMB_COPY_H2GH, 0), 0) << said();
  std::string found(sizeof(after), ' ');
  EXPECT_EQ(pread(file.get(), found.data(), found.size(), 100), ssize_t{sizeof(after)});
  EXPECT_EQ(found, std::string(after, sizeof(after)));
}

TEST_F(Level2, refusesAFileOfTheCallersThatCannotBeASlot) {
  startBm();
  smem_bm_create_option_t option = {};
  option.localDRAMSize = 2 * kMiB;
  option.flags = SMEM_BM_FLAG_CREATE_WITH_SHM;
  option.dramShmFd = -1;
  EXPECT_EQ(smem_bm_create2(0, &option), nullptr);
  EXPECT_THAT(said(), HasSubstr("descriptor -1"));
  const Fd unsealed(memfd_create("slot", MFD_CLOEXEC));
  ASSERT_EQ(ftruncate(unsealed.get(), 2 * kMiB), 0);
  option.dramShmFd = unsealed.get();
  EXPECT_EQ(smem_bm_create2(0, &option), nullptr);
  EXPECT_THAT(said(), HasSubstr("MFD_ALLOW_SEALING"));
  const Fd tooShort(memfd_create("slot", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(ftruncate(tooShort.get(), kMiB), 0);
  option.dramShmFd = tooShort.get();
  EXPECT_EQ(smem_bm_create2(0, &option), nullptr);
  EXPECT_THAT(said(), HasSubstr("1048576"));
  EXPECT_EQ(smem_bm_create2(0, nullptr), nullptr);
  option.flags = 0;
  joined(option);
}

TEST_F(Level2, listensWhereTheProgramSays) {
  smem_bm_config_t config;
  ASSERT_EQ(smem_bm_config_init(&config), 0);
  std::strcpy(config.hcomUrl, "nonsense");  // NOLINT(clang-analyzer-security*)
  ASSERT_EQ(smem_bm_init(url_.c_str(), 1, 0, &config), 0) << said();
  smem_bm_create_option_t option = {};
  option.localHBMSize = 2 * kMiB;
  EXPECT_EQ(smem_bm_create2(0, &option), nullptr);
  EXPECT_THAT(said(), HasSubstr("nonsense"));
  smem_bm_uninit(0);
  std::strcpy(config.hcomUrl, "tcp://127.0.0.1:0");  // NOLINT(clang-analyzer-security*)
  ASSERT_EQ(smem_bm_init(url_.c_str(), 1, 0, &config), 0) << said();
  joined(option);
}

// The longest timeouts that there are do not overflow anywhere.
TEST_F(Level2, waitsAsLongAsCanBeSaid) {
  smem_bm_config_t bm;
  ASSERT_EQ(smem_bm_config_init(&bm), 0);
  bm.initTimeout = bm.createTimeout = bm.controlOperationTimeout = SMEM_BM_TIMEOUT_MAX;
  ASSERT_EQ(smem_bm_init(url_.c_str(), 1, 0, &bm), 0) << said();
  smem_bm_create_option_t option = {};
  option.localHBMSize = 2 * kMiB;
  smem_bm_t pool = joined(option);
  char byte = 'm';
  smem_copy_params copy = {&byte, smem_bm_ptr_by_mem_type(pool, SMEM_MEM_TYPE_DEVICE, 0), 1};
  EXPECT_EQ(smem_bm_copy(pool, &copy, SMEMB_COPY_H2G, ASYNC_COPY_FLAG), 0) << said();
  EXPECT_EQ(smem_bm_wait(pool), 0) << said();
  smem_shm_config_t shm;
  ASSERT_EQ(smem_shm_config_init(&shm), 0);
  shm.shmInitTimeout = shm.shmCreateTimeout = shm.controlOperationTimeout = SMEM_SHM_TIMEOUT_MAX;
  ASSERT_EQ(smem_shm_init(url_.c_str(), 1, 0, 0, &shm), 0) << said();
  void* base = nullptr;
  smem_shm_t memory = smem_shm_create(0, 1, 0, 2 * kMiB, SMEMS_DATA_OP_MTE, 0, &base);
  ASSERT_NE(memory, nullptr) << said();
  EXPECT_EQ(smem_shm_control_barrier(memory), 0) << said();
  EXPECT_EQ(smem_shm_subgroup_barrier(memory, "one", 1, 0), 0) << said();
  EXPECT_EQ(smem_bm_leave(pool, 0), 0) << said();
}

TEST_F(Level2, objectsAreMadeOnceAndTheirHandlesEnd) {
  smem_shm_t memory = object();
  void* base = nullptr;
  EXPECT_EQ(smem_shm_create(0, 1, 0, 2 * kMiB, SMEMS_DATA_OP_MTE, 0, &base), nullptr);
  EXPECT_THAT(said(), HasSubstr("object 0 already"));
  uint32_t reach = 0;
  EXPECT_EQ(smem_shm_topology_can_reach(memory, 0, &reach), 0) << said();
  EXPECT_EQ(reach, SMEMS_DATA_OP_MTE);
  EXPECT_EQ(smem_shm_topology_can_reach(memory, 1, &reach), SMEM_INVALID_PARAM);
  EXPECT_EQ(smem_shm_topology_can_reach(memory, 0, nullptr), SMEM_INVALID_PARAM);
  char byte = 0;
  EXPECT_EQ(smem_shm_control_allgather(memory, &byte, 1, &byte, 2), SMEM_INVALID_PARAM);
  EXPECT_EQ(smem_shm_destroy(memory, 0), 0) << said();
  for (smem_shm_t stale : {memory, static_cast<smem_shm_t>(nullptr), static_cast<void*>(&byte)}) {
    EXPECT_EQ(smem_shm_destroy(stale, 0), SMEM_INVALID_PARAM);
    EXPECT_EQ(smem_shm_control_barrier(stale), SMEM_INVALID_PARAM);
    EXPECT_EQ(smem_shm_control_allgather(stale, &byte, 1, &byte, 1), SMEM_INVALID_PARAM);
    EXPECT_EQ(smem_shm_set_extra_context(stale, &byte, 1), SMEM_INVALID_PARAM);
    EXPECT_EQ(smem_shm_topology_can_reach(stale, 0, &reach), SMEM_INVALID_PARAM);
    EXPECT_EQ(smem_shm_register_exit(stale, [](int) {}), SMEM_INVALID_PARAM);
    EXPECT_EQ(smem_shm_get_global_rank(stale), UINT32_MAX);
  }
}

TEST_F(Level2, servesAStoreByItself) {
  EXPECT_EQ(smem_create_config_store("tcp://0.0.0.0:7000"), SMEM_INVALID_PARAM);
  EXPECT_EQ(smem_create_config_store(nullptr), SMEM_INVALID_PARAM);
  EXPECT_EQ(smem_create_config_store(url_.c_str()), 0) << said();
  EXPECT_EQ(smem_create_config_store(url_.c_str()), SMEM_REPEAT_CALL);
  EXPECT_EQ(smem_create_config_store("tcp://192.0.2.1:7000"), SMEM_NEW_OBJECT_FAILED);
  SmemRanks ranks(2);
  ranks.expectOk("bm " + url_ + " 2 {} 0");
  ranks.expectOk("create 0 0 2097152");
  ranks.expectOk("join 0");
  EXPECT_TRUE(ranks[0].ask("put 0 1 0 100 1").ok);
  EXPECT_TRUE(ranks[1].ask("check 0 1 0 100 1").ok);
}

TEST_F(Level2, aPortOfAnotherProcessIsInUse) {
  SmemRank other;
  ASSERT_TRUE(other.ask("bm " + url_ + " 1 0").ok);
  EXPECT_EQ(smem_create_config_store(url_.c_str()), SMEM_RESOURCE_IN_USE) << said();
}

// 1: upstream's switches did nothing.
TEST_F(Level2, theConfigurationsTlsIsUsedOrRefused) {
  smem_bm_config_t config;
  ASSERT_EQ(smem_bm_config_init(&config), 0);
  config.rankId = 0;
  config.autoRanking = false;
  const auto start = [&] { return smem_bm_init(url_.c_str(), 1, 0, &config); };
  const auto put = [](char(&into)[SMEM_TLS_PATH_SIZE], const std::string& path) {
    path.copy(into, sizeof(into) - 1);
  };
  config.storeTlsConfig.tlsEnable = true;
  EXPECT_EQ(start(), SMEM_INVALID_PARAM);
  EXPECT_THAT(said(), HasSubstr("tlsCaPath"));
  put(config.storeTlsConfig.decrypterLibPath, "libdecrypt.so");
  EXPECT_EQ(start(), SMEM_INVALID_PARAM);
  EXPECT_THAT(said(), HasSubstr("decrypterLibPath"));
  config.storeTlsConfig.decrypterLibPath[0] = 0;

  const Certificates ca;
  const TlsOptions files = ca.issue("a");
  put(config.storeTlsConfig.caPath, files.ca);
  put(config.storeTlsConfig.certPath, files.certificate);
  put(config.storeTlsConfig.keyPath, files.key);
  ASSERT_EQ(start(), 0) << said();
  SmemRank plain;
  const Reply refused = plain.ask("bm " + url_ + " 1 -1 0 10");
  EXPECT_THAT(refused.text, HasSubstr("TLS"));
}

// 3: upstream never gave a number back.
TEST_F(Level2, numbersAreGivenBack) {
  smem_shm_t memory = object();
  uint32_t number = 99;
  for (uint32_t expected : {0U, 1U, 2U}) {
    EXPECT_EQ(smem_shm_atomic_alloc_value(memory, 3, &number), 0) << said();
    EXPECT_EQ(number, expected);
  }
  EXPECT_EQ(smem_shm_atomic_alloc_value(memory, 3, &number), SMEM_MALLOC_FAILED);
  EXPECT_EQ(smem_shm_atomic_release_value(memory, 1), 0) << said();
  EXPECT_EQ(smem_shm_atomic_release_value(memory, 1), SMEM_OBJECT_NOT_EXISTS);
  EXPECT_EQ(smem_shm_atomic_alloc_value(memory, 3, &number), 0) << said();
  EXPECT_EQ(number, 1);
  EXPECT_EQ(smem_shm_atomic_alloc_value(memory, 0, &number), SMEM_INVALID_PARAM);
  EXPECT_EQ(smem_shm_atomic_alloc_value(memory, 1025, &number), SMEM_INVALID_PARAM);
  EXPECT_EQ(smem_shm_atomic_release_value(memory, -1), SMEM_INVALID_PARAM);
}

// 4: upstream's sub-groups removed the keys of the whole.
TEST_F(Level2, subGroupsDoNotTouchTheWhole) {
  smem_shm_t memory = object();
  char in[4] = {1, 2, 3, 4};
  char out[4] = {};
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(smem_shm_subgroup_barrier(memory, "left", 1, 0), 0) << said();
    EXPECT_EQ(smem_shm_control_barrier(memory), 0) << said();
    EXPECT_EQ(smem_shm_subgroup_allgather(memory, "left", 1, 0, in, 4, out, 4), 0) << said();
    EXPECT_EQ(std::string(in, 4), std::string(out, 4));
  }
  EXPECT_EQ(smem_shm_subgroup_barrier(memory, "left", 2, 0), SMEM_INVALID_PARAM);
  EXPECT_EQ(smem_shm_subgroup_barrier(memory, "", 1, 0), SMEM_INVALID_PARAM);
  EXPECT_EQ(smem_shm_subgroup_barrier(memory, std::string(64, 'k').c_str(), 1, 0),
            SMEM_INVALID_PARAM);
  EXPECT_EQ(smem_shm_subgroup_barrier(memory, nullptr, 1, 0), SMEM_INVALID_PARAM);
}

std::promise<int>& exitStatus() {
  static std::promise<int> promise;
  return promise;
}

TEST_F(Level2, tellsOfAnExit) {
  smem_shm_t memory = object();
  EXPECT_EQ(smem_shm_register_exit(memory, nullptr), SMEM_INVALID_PARAM);
  EXPECT_EQ(smem_shm_register_exit(memory, [](int status) { exitStatus().set_value(status); }), 0);
  smem_shm_global_exit(memory, 42);
  auto told = exitStatus().get_future();
  ASSERT_EQ(told.wait_for(kPatience), std::future_status::ready);
  EXPECT_EQ(told.get(), 42);
}

}  // namespace
}  // namespace hmc::test
