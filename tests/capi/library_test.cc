// The library as a whole: what it exports, its log, its sentences, and fork().

#include <gtest/gtest.h>
#include <smem_bm.h>
#include <smem_shm.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <set>
#include <string>

#include "last_error.h"
#include "smem_ranks.h"

namespace hmc::test {
namespace {

using testing::HasSubstr;

int32_t startAlone(const std::string& url) {
  smem_bm_config_t config;
  smem_bm_config_init(&config);
  config.rankId = 0;
  return smem_bm_init(url.c_str(), 1, 0, &config);
}

class LibraryTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(smem_init(0), 0); }
  void TearDown() override { smem_uninit(); }

  const std::string url_ = freeUrl();
};

std::set<std::string> exportedNames() {
  std::set<std::string> names;
  FILE* const list = popen("nm -D --defined-only " HMC_SMEM_LIBRARY, "r");  // NOLINT(cert-env33-c)
  char name[256];
  while (list && std::fscanf(list, "%*s %*s %255s", name) == 1) names.insert(name);
  EXPECT_TRUE(list && pclose(list) == 0) << "nm failed";
  return names;
}

// Level 1 by name; whatever else there is, is of the later interface.
TEST_F(LibraryTest, exportsItsFunctionsAndNothingElse) {
  const auto names = exportedNames();
  for (const char* name : {"smem_init",
                           "smem_uninit",
                           "smem_set_extern_logger",
                           "smem_set_log_level",
                           "smem_get_last_err_msg",
                           "smem_get_and_clear_last_err_msg",
                           "smem_set_ssl_option",
                           "smem_bm_config_init",
                           "smem_bm_init",
                           "smem_bm_uninit",
                           "smem_bm_get_rank_id",
                           "smem_bm_create",
                           "smem_bm_destroy",
                           "smem_bm_join",
                           "smem_bm_leave",
                           "smem_bm_get_local_mem_size",
                           "smem_bm_ptr",
                           "smem_bm_copy",
                           "smem_bm_copy_2d",
                           "smem_shm_config_init",
                           "smem_shm_init",
                           "smem_shm_uninit",
                           "smem_shm_query_support_data_operation",
                           "smem_shm_create",
                           "smem_shm_destroy",
                           "smem_shm_set_extra_context",
                           "smem_shm_get_global_rank",
                           "smem_shm_get_global_rank_size",
                           "smem_shm_control_barrier",
                           "smem_shm_control_allgather",
                           "smem_shm_topology_can_reach"}) {
    EXPECT_TRUE(names.contains(name)) << name;
  }
  for (const std::string& name : names) EXPECT_EQ(name.rfind("smem_", 0), 0) << name;
}

TEST_F(LibraryTest, lastSentenceStaysUntilItIsCleared) {
  EXPECT_EQ(smem_set_log_level(4), SMEM_INVALID_PARAM);
  EXPECT_EQ(smem_set_log_level(-1), SMEM_INVALID_PARAM);
  EXPECT_EQ(smem_set_log_level(3), 0);
  EXPECT_THAT(said(), HasSubstr("log level -1"));
  EXPECT_THAT(std::string(smem_get_and_clear_last_err_msg()), HasSubstr("log level -1"));
  EXPECT_STREQ(smem_get_last_err_msg(), "");
  EXPECT_STREQ(smem_get_and_clear_last_err_msg(), "");
}

std::atomic<int> heard{0};

TEST_F(LibraryTest, logLinesGoToTheProgramsOwnLogger) {
  EXPECT_EQ(smem_set_extern_logger(nullptr), SMEM_INVALID_PARAM);
  EXPECT_EQ(smem_set_extern_logger([](int level, const char* line) {
              if (level == 1 && std::string(line).find("HMC") != std::string::npos) ++heard;
            }),
            0);
  EXPECT_EQ(smem_set_log_level(1), 0);
  smem_uninit();
  ASSERT_EQ(smem_init(0), 0);
  EXPECT_EQ(heard.load(), 1);
  EXPECT_EQ(smem_set_log_level(3), 0);
}

// Threads and sockets do not survive fork(): the child starts as if nothing had been.
TEST_F(LibraryTest, aChildOfAnInitialisedProcessStartsAfresh) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "the thread sanitizer forbids threads in such a child";
#endif
  ASSERT_EQ(startAlone(url_), 0) << said();
  smem_bm_t pool = smem_bm_create(0, 0, SMEMB_DATA_OP_SDMA, 0, 2 * kMiB, 0);
  void* slot = nullptr;
  ASSERT_EQ(smem_bm_join(pool, 0, &slot), 0) << said();
  const pid_t child = fork();
  if (child == 0) {
    char byte = 0;
    const bool refused =
        smem_bm_copy(pool, &byte, &byte, 1, SMEMB_COPY_H2G, 0) == SMEM_NOT_INITIALIZED;
    const bool started = smem_init(0) == 0 && startAlone(freeUrl()) == 0;
    smem_uninit();
    _exit(refused && started ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  char byte = 0;
  EXPECT_EQ(smem_bm_copy(pool, &byte, smem_bm_ptr(pool, 0), 1, SMEMB_COPY_H2G, 0), 0) << said();
}

}  // namespace
}  // namespace hmc::test
