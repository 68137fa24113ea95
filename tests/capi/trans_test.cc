// Engines of the transfer interface: in one process here, in several in tests/python.

#include <gtest/gtest.h>
#include <smem_trans.h>

#include <atomic>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "last_error.h"
#include "smem_ranks.h"

namespace hmc::test {
namespace {

using testing::HasSubstr;

class Trans : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(smem_trans_config_init(&config_), 0);
    config_.role = SMEM_TRANS_BOTH;
    ASSERT_EQ(smem_trans_init(&config_), 0) << said();
    ASSERT_EQ(smem_create_config_store(url_.c_str()), 0) << said();
    a_ = engine("a:1");
    b_ = engine("b:1");
    std::iota(mine_.begin(), mine_.end(), 0);
  }
  void TearDown() override { smem_uninit(); }

  smem_trans_t engine(const char* id) {
    smem_trans_t made = smem_trans_create(url_.c_str(), id, &config_);
    EXPECT_NE(made, nullptr) << said();
    return made;
  }
  int32_t write(size_t mineAt, size_t theirsAt, size_t size) {
    return smem_trans_write(a_, mine_.data() + mineAt, "b:1", theirs_.data() + theirsAt, size, 0);
  }

  static constexpr size_t kSize = size_t{64} << 10;
  const std::string url_ = freeUrl();
  smem_trans_config_t config_;
  smem_trans_t a_ = nullptr;
  smem_trans_t b_ = nullptr;
  std::vector<char> mine_ = std::vector<char>(kSize);
  std::vector<char> theirs_ = std::vector<char>(kSize);
};

TEST_F(Trans, defaultsAreComplete) {
  smem_trans_config_t config;
  memset(&config, 0xEE, sizeof(config));
  ASSERT_EQ(smem_trans_config_init(&config), 0);
  EXPECT_EQ(config.role, SMEM_TRANS_SENDER);
  EXPECT_EQ(config.initTimeout, 120);
  EXPECT_EQ(config.deviceId, UINT32_MAX);
  EXPECT_EQ(config.flags, 0);
  EXPECT_EQ(config.dataOpType, SMEMB_DATA_OP_SDMA);
  EXPECT_FALSE(config.startConfigServer);
}

TEST_F(Trans, movesBytesByAddress) {
  ASSERT_EQ(smem_trans_register_mem(b_, theirs_.data(), kSize, 0), 0) << said();
  EXPECT_EQ(write(0, 0, kSize), 0) << said();
  EXPECT_EQ(theirs_, mine_);
  std::vector<char> back(100);
  EXPECT_EQ(smem_trans_read(a_, back.data(), "b:1", theirs_.data() + 7, 100, 0), 0) << said();
  EXPECT_TRUE(std::equal(back.begin(), back.end(), mine_.begin() + 7));
}

TEST_F(Trans, batchesCrossRegistrations) {
  void* halves[] = {theirs_.data(), theirs_.data() + kSize / 2};
  size_t sizes[] = {kSize / 2, kSize / 2};
  ASSERT_EQ(smem_trans_batch_register_mem(b_, halves, sizes, 2, 0), 0) << said();
  const void* local[] = {mine_.data() + 1000, mine_.data()};
  void* remote[] = {theirs_.data() + 1000, theirs_.data()};
  size_t lengths[] = {kSize - 1000, 1000};
  EXPECT_EQ(smem_trans_batch_write(a_, local, "b:1", remote, lengths, 2, 0), 0) << said();
  EXPECT_EQ(theirs_, mine_);
}

// 17: upstream's deregistration does nothing, and its registration takes pages.
TEST_F(Trans, exactlyWhatIsRegisteredIsReachedAndNothingAfterwards) {
  ASSERT_EQ(smem_trans_register_mem(b_, theirs_.data() + 100, 100, 0), 0) << said();
  EXPECT_EQ(write(0, 100, 100), 0) << said();
  EXPECT_EQ(write(0, 99, 1), SMEM_OBJECT_NOT_EXISTS);
  EXPECT_EQ(write(0, 199, 2), SMEM_OBJECT_NOT_EXISTS);
  EXPECT_EQ(smem_trans_deregister_mem(b_, theirs_.data() + 100), 0) << said();
  EXPECT_EQ(write(0, 100, 100), SMEM_OBJECT_NOT_EXISTS);
  EXPECT_THAT(said(), HasSubstr("b:1 has no registered memory at"));
  EXPECT_EQ(theirs_[200], 0);
}

TEST_F(Trans, aBatchIsRegisteredWholeOrNotAtAll) {
  void* addresses[] = {theirs_.data(), theirs_.data() + 100, theirs_.data()};
  size_t contradiction[] = {100, 100, 50};
  EXPECT_EQ(smem_trans_batch_register_mem(b_, addresses, contradiction, 3, 0),
            SMEM_DUPLICATED_OBJECT);
  void* unreadable[] = {theirs_.data(), reinterpret_cast<void*>(4096)};
  size_t sizes[] = {100, 100};
  EXPECT_NE(smem_trans_batch_register_mem(b_, unreadable, sizes, 2, 0), 0);
  EXPECT_EQ(write(0, 0, 100), SMEM_OBJECT_NOT_EXISTS);
  EXPECT_EQ(smem_trans_batch_register_mem(b_, addresses, sizes, 2, 0), 0) << said();
  EXPECT_EQ(smem_trans_batch_register_mem(b_, addresses, sizes, 2, 0), 0) << said();
  EXPECT_EQ(write(0, 0, 200), 0) << said();
}

TEST_F(Trans, allocatedMemoryIsRegistered) {
  auto* theirs = static_cast<char*>(smem_trans_malloc(b_, 4096));
  ASSERT_NE(theirs, nullptr) << said();
  EXPECT_EQ(smem_trans_write(a_, mine_.data(), "b:1", theirs, 4096, 0), 0) << said();
  EXPECT_TRUE(std::equal(mine_.begin(), mine_.begin() + 4096, theirs));
  EXPECT_EQ(smem_trans_deregister_mem(b_, theirs), SMEM_INVALID_PARAM);
  EXPECT_EQ(smem_trans_free(b_, theirs), 0) << said();
  EXPECT_EQ(smem_trans_write(a_, mine_.data(), "b:1", theirs, 1, 0), SMEM_OBJECT_NOT_EXISTS);
  EXPECT_EQ(smem_trans_free(b_, theirs), SMEM_OBJECT_NOT_EXISTS);
  ASSERT_EQ(smem_trans_register_mem(b_, theirs_.data(), 1, 0), 0);
  EXPECT_EQ(smem_trans_free(b_, theirs_.data()), SMEM_INVALID_PARAM);
  EXPECT_EQ(smem_trans_malloc(b_, 0), nullptr);
}

TEST_F(Trans, refusesWhatCannotBe) {
  config_.role = SMEM_TRANS_NONE;
  EXPECT_EQ(smem_trans_init(&config_), SMEM_INVALID_PARAM);
  EXPECT_EQ(smem_trans_create(url_.c_str(), "c:1", &config_), nullptr);
  config_.role = SMEM_TRANS_SENDER;
  config_.initTimeout = 0;
  EXPECT_EQ(smem_trans_init(&config_), SMEM_INVALID_PARAM);
  config_.initTimeout = 120;
  EXPECT_EQ(smem_trans_create(url_.c_str(), "", &config_), nullptr);
  EXPECT_EQ(smem_trans_create(url_.c_str(), "a:1", &config_), nullptr);
  EXPECT_THAT(said(), HasSubstr("another engine has the id a:1"));
  EXPECT_EQ(smem_trans_create(nullptr, "c:1", &config_), nullptr);
  EXPECT_EQ(smem_trans_create(url_.c_str(), nullptr, &config_), nullptr);
  EXPECT_EQ(smem_trans_create(url_.c_str(), "c:1", nullptr), nullptr);
  EXPECT_EQ(smem_trans_write(a_, nullptr, "b:1", theirs_.data(), 1, 0), SMEM_INVALID_PARAM);
  EXPECT_EQ(smem_trans_write(a_, mine_.data(), nullptr, theirs_.data(), 1, 0), SMEM_INVALID_PARAM);
  EXPECT_EQ(smem_trans_write(a_, mine_.data(), "b:1", nullptr, 1, 0), SMEM_INVALID_PARAM);
  EXPECT_EQ(write(0, 0, 0), SMEM_INVALID_PARAM);
  EXPECT_EQ(smem_trans_write(&config_, mine_.data(), "b:1", theirs_.data(), 1, 0),
            SMEM_INVALID_PARAM);
  EXPECT_EQ(smem_trans_write(a_, mine_.data(), "nobody", theirs_.data(), 1, 0),
            SMEM_OBJECT_NOT_EXISTS);
  EXPECT_THAT(said(), HasSubstr("no engine nobody"));
}

TEST_F(Trans, anEngineThatEndedIsGoneAndItsIdFree) {
  ASSERT_EQ(smem_trans_register_mem(b_, theirs_.data(), kSize, 0), 0);
  EXPECT_EQ(write(0, 0, kSize), 0) << said();
  smem_trans_destroy(b_, 0);
  EXPECT_NE(write(0, 0, kSize), 0);
  b_ = engine("b:1");
  EXPECT_EQ(write(0, 0, kSize), SMEM_OBJECT_NOT_EXISTS);
  ASSERT_EQ(smem_trans_register_mem(b_, theirs_.data(), kSize, 0), 0);
  EXPECT_EQ(write(0, 0, kSize), 0) << said();
  smem_trans_uninit(0);
  EXPECT_EQ(write(0, 0, kSize), SMEM_NOT_INITIALIZED);
}

// Transfers while the memory comes and goes: each is done or refused, and none ends otherwise.
TEST_F(Trans, memoryComesAndGoesUnderManyThreads) {
  std::atomic<bool> over{false};
  std::atomic<int> done{0};
  std::vector<std::thread> writers;
  for (size_t i = 0; i < 3; ++i) {
    writers.emplace_back([&, i] {
      while (!over.load()) {
        const int32_t code = write(i * 1000, i * 1000, 1000);
        if (code == 0) ++done;
        EXPECT_TRUE(code == 0 || code == SMEM_OBJECT_NOT_EXISTS) << code << ": " << said();
      }
    });
  }
  for (int round = 0; round < 20; ++round) {
    EXPECT_EQ(smem_trans_register_mem(b_, theirs_.data(), kSize, 0), 0) << said();
    const int before = done.load();
    while (done.load() < before + 3) std::this_thread::yield();
    EXPECT_EQ(smem_trans_deregister_mem(b_, theirs_.data()), 0) << said();
    std::fill(theirs_.begin(), theirs_.end(), 0);
    EXPECT_EQ(std::count(theirs_.begin(), theirs_.end(), 0), kSize);
  }
  over.store(true);
  for (auto& writer : writers) writer.join();
}

}  // namespace
}  // namespace hmc::test
