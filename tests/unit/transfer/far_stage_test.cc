#include "transfer/far_stage.h"

#include <gtest/gtest.h>
#include <poll.h>

#include <condition_variable>
#include <cstring>
#include <deque>
#include <future>
#include <mutex>
#include <thread>

#include "base/error.h"
#include "transfer/completion_list.h"
#include "unit/transfer/engine_fixture.h"

namespace hmc {
namespace {

using namespace std::chrono_literals;

// Slots in this process whose copies end when the test says so.
class ManualStage final : public FarStage {
 public:
  ManualStage(Transport& target, Link& link, char* memory, uint32_t count)
      : bytes_(count * StagePool::kSlotSize), memory_(memory) {
    registration_ = *target.registerRegion({bytes_.data(), bytes_.size(), {}}, Access::readWrite);
    slots_ = *link.importKey(registration_->key(), 10s, nullptr);
    for (uint32_t i = 0; i < count; ++i) free_.push_back(i);
  }
  const RemoteMemory& slots() const override { return *slots_; }
  std::optional<uint32_t> take() override {
    std::lock_guard lock(mutex_);
    if (free_.empty()) return std::nullopt;
    const uint32_t slot = free_.front();
    free_.pop_front();
    return slot;
  }
  void give(uint32_t slot) override {
    std::lock_guard lock(mutex_);
    free_.push_back(slot);
  }
  void copy(OpKind, uint32_t slot, std::span<const Block> blocks, Completion& completion) override {
    std::lock_guard lock(mutex_);
    for (const auto& [from, to, size] : blocks)
      memcpy(memory_ + to, &bytes_[slot * StagePool::kSlotSize + from], size);
    asked_.push_back(&completion);
    changed_.notify_all();
  }
  // Ends the oldest copy, once there is one.
  bool endCopy() {
    Completion* one = nullptr;
    {
      std::unique_lock lock(mutex_);
      if (!changed_.wait_for(lock, 60s, [&] { return !asked_.empty(); })) return false;
      one = asked_.front();
      asked_.pop_front();
    }
    one->finish();
    return true;
  }

 private:
  std::vector<char> bytes_;
  char* const memory_;
  std::unique_ptr<Registration> registration_;
  std::unique_ptr<RemoteMemory> slots_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<uint32_t> free_;
  std::deque<Completion*> asked_;
};

class FarStageTest : public PatientFixture {
 protected:
  static constexpr size_t kSmall = 1000;
  void makeStage(uint32_t slots) {
    stage_ = std::make_unique<ManualStage>(*b_, *link_, remote_.data(), slots);
    route_.remote = nullptr;
    route_.far = stage_.get();
  }
  std::shared_ptr<TransferState> start() {
    return a_->start(OpKind::put, route_, {{0, 0, 0, 0, 1, kSmall}}, {});
  }
  std::unique_ptr<ManualStage> stage_;
};

TEST_F(FarStageTest, theEndOfACopyWakesWhoeverWaitsForIt) {
  makeStage(1);
  auto put = std::async(std::launch::async,
                        [&] { return a_->run(OpKind::put, route_, 0, 0, kSmall, 60s); });
  // In the first sleep the link moves the bytes into the slot; nothing but the copy ends the next.
  ASSERT_TRUE(awaitSleeps(2));
  ASSERT_TRUE(stage_->endCopy());
  EXPECT_TRUE(put.get().ok());
  EXPECT_EQ(0, memcmp(local_.data(), remote_.data(), kSmall));
}

TEST_F(FarStageTest, aSlotThatIsGivenBackWakesWhoeverWaitsForOne) {
  makeStage(1);
  auto first = start();  // it has the slot
  auto put = std::async(std::launch::async,
                        [&] { return a_->run(OpKind::put, route_, 0, 0, kSmall, 60s); });
  // Nobody waits for the first transfer: the thread that lacks a slot moves it, then sleeps.
  ASSERT_TRUE(awaitSleeps(2));
  ASSERT_TRUE(stage_->endCopy());
  ASSERT_TRUE(stage_->endCopy());
  EXPECT_TRUE(put.get().ok());
  EXPECT_TRUE(a_->wait(*first, 60s).ok());
}

TEST_F(FarStageTest, theEndOfACopyWakesTheProgressThread) {
  makeStage(2);
  auto list = *CompletionList::create();
  ASSERT_TRUE(list->watch(start(), 1).ok());
  ASSERT_TRUE(awaitSleeps(2));
  ASSERT_TRUE(stage_->endCopy());
  pollfd event{list->fd(), POLLIN, 0};
  EXPECT_EQ(poll(&event, 1, 60000), 1);
}

}  // namespace
}  // namespace hmc
