#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <thread>

#include "base/error.h"
#include "memory/backends.h"
#include "memory/copy.h"
#include "unit/transfer/engine_fixture.h"

namespace hmc {
namespace {

using EngineTest = EngineFixture;
using namespace std::chrono_literals;
using testing::HasSubstr;

TEST_F(EngineTest, putsAndGetsMoreThanOnePieceAndOneWindow) {
  ASSERT_TRUE(a_->run(OpKind::put, route_, 0, 0, kSize, 30s).ok());
  EXPECT_EQ(local_, remote_);
  std::iota(remote_.begin(), remote_.end(), 77);
  ASSERT_TRUE(a_->run(OpKind::get, route_, 0, 0, kSize, 30s).ok());
  EXPECT_EQ(local_, remote_);
}

TEST_F(EngineTest, drivesALinkThatTakesOneOperationAtATime) {
  faults_->mostPerPost = 1;
  faults_->delay = 3;
  ASSERT_TRUE(a_->run(OpKind::put, route_, 5, 9, kSize / 2, 30s).ok());
  EXPECT_EQ(0, memcmp(local_.data() + 5, remote_.data() + 9, kSize / 2));
}

TEST_F(EngineTest, movesStridedPieces) {
  auto transfer = a_->start(OpKind::put, route_, {{0, 64, 0, 16, 1000, 16}}, {});
  ASSERT_TRUE(a_->wait(*transfer, 30s).ok());
  for (size_t i = 0; i < 1000; ++i)
    ASSERT_EQ(0, memcmp(&local_[i * 64], &remote_[i * 16], 16)) << i;
}

TEST_F(EngineTest, aBatchOfNothingIsDone) {
  auto transfer = a_->start(OpKind::put, route_, Strided{}, {});
  EXPECT_TRUE(transfer->done());
  EXPECT_TRUE(a_->wait(*transfer, 0s).ok());
}

TEST_F(EngineTest, oneFailedPieceFailsTheTransferWithItsSentence) {
  faults_->failNth(5, error(Code::permissionDenied, "piece five"));
  Status status = a_->run(OpKind::put, route_, 0, 0, kSize, 30s);
  EXPECT_EQ(status.code(), Code::permissionDenied);
  EXPECT_THAT(status.message(), HasSubstr("piece five"));
  EXPECT_TRUE(a_->run(OpKind::put, route_, 0, 0, 100, 30s).ok());
}

TEST_F(EngineTest, aDeadPeerFinishesEverything) {
  faults_->mostPerPost = 0;
  auto transfer = a_->start(OpKind::put, route_, {{0, 0, 0, 0, 1, kSize}}, {});
  std::thread death([&] { faults_->die(error(Code::disconnected, "it died")); });
  Status status = a_->wait(*transfer, 30s);
  death.join();
  EXPECT_EQ(status.code(), Code::disconnected);
  EXPECT_EQ(a_->run(OpKind::put, route_, 0, 0, 8, 30s).code(), Code::disconnected);
}

TEST_F(EngineTest, aLateWaitLeavesTheTransferGoing) {
  faults_->stalled = true;
  auto transfer = a_->start(OpKind::put, route_, {{0, 0, 0, 0, 1, 1000}}, {});
  EXPECT_EQ(a_->wait(*transfer, 20ms).code(), Code::deadlineExceeded);
  EXPECT_FALSE(a_->test(*transfer));
  faults_->stalled = false;
  EXPECT_TRUE(a_->wait(*transfer, 30s).ok());
  EXPECT_EQ(0, memcmp(local_.data(), remote_.data(), 1000));
}

TEST_F(EngineTest, aBlockingCallThatIsLateHasFencedItsTransfer) {
  faults_->stalled = true;
  Status late = a_->run(OpKind::put, route_, 0, 0, 1000, 20ms);
  EXPECT_TRUE(late.ok() || late.code() == Code::deadlineExceeded) << late.toString();
  faults_->stalled = false;
  std::vector<char> canary(kSize, 'c');
  remote_ = canary;
  for (int i = 0; i < 100; ++i) a_->transport().progress(Deadline::now());
  EXPECT_EQ(remote_, canary);
}

TEST_F(EngineTest, cancelStopsWhatWasNotPostedAndLetsTheRestArrive) {
  faults_->mostPerPost = 0;
  auto transfer = a_->start(OpKind::put, route_, {{0, 0, 0, 0, 1, kSize}}, {});
  EXPECT_EQ(a_->cancel(*transfer).code(), Code::cancelled);
  EXPECT_TRUE(transfer->done());
  faults_->mostPerPost = 8;
  EXPECT_EQ(std::vector<char>(kSize), remote_);
  EXPECT_TRUE(a_->run(OpKind::put, route_, 0, 0, 8, 30s).ok()) << "the link must survive";
}

TEST_F(EngineTest, cancelOfATransferThatFailedSaysWhyItDid) {
  faults_->die(error(Code::disconnected, "it died"));
  auto transfer = a_->start(OpKind::put, route_, {{0, 0, 0, 0, 1, 8}}, {});
  EXPECT_EQ(a_->wait(*transfer, 30s).code(), Code::disconnected);
  EXPECT_EQ(a_->cancel(*transfer).code(), Code::disconnected);
}

TEST_F(EngineTest, cancelOfAFinishedTransferIsOk) {
  auto transfer = a_->start(OpKind::put, route_, {{0, 0, 0, 0, 1, 8}}, {});
  ASSERT_TRUE(a_->wait(*transfer, 30s).ok());
  EXPECT_TRUE(a_->cancel(*transfer).ok());
}

TEST_F(EngineTest, manyThreadsWaitWhileOneOfThemPolls) {
  faults_->delay = 2;
  constexpr size_t kThreads = 8;
  constexpr size_t kPart = kSize / kThreads;
  std::vector<std::thread> threads;
  std::atomic<int> failures{0};
  for (size_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (size_t at = 0; at < kPart; at += kPart / 32) {
        size_t offset = t * kPart + at;
        if (!a_->run(OpKind::put, route_, offset, offset, kPart / 32, 60s).ok()) ++failures;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(failures, 0);
  EXPECT_EQ(local_, remote_);
}

TEST_F(EngineTest, countsWhatTheLinkTookAndWhenItTookLess) {
  const auto totals = [&] { return a_->transport().counters().totals(); };
  ASSERT_TRUE(a_->run(OpKind::put, route_, 0, 0, 100, 30s).ok());
  EXPECT_EQ(totals().operations, 1U);
  EXPECT_EQ(totals().bytes, 100U);
  EXPECT_EQ(totals().stalls, 0U);
  faults_->mostPerPost = 1;
  ASSERT_TRUE(a_->run(OpKind::get, route_, 0, 0, 5 * (64 << 10), 30s).ok());
  EXPECT_EQ(totals().operations, 6U);
  EXPECT_EQ(totals().bytes, 100U + 5 * (64 << 10));
  EXPECT_GE(totals().stalls, 4U);
}

// Local memory that the transport cannot touch goes through the host, both ways.
TEST_F(EngineTest, stagesDeviceMemoryThroughTheHost) {
  Backend& gpu = **findBackend(DeviceKind::cuda);
  Region device = *gpu.allocate(1, kSize);
  ASSERT_FALSE(a_->touches(DeviceKind::cuda));
  ASSERT_TRUE(copy(device, hostRegion(local_)).ok());
  Route route = route_;
  route.local = device;
  route.registration = nullptr;
  route.staged = true;
  ASSERT_TRUE(a_->run(OpKind::put, route, 3, 7, kSize - 10, 30s).ok());
  EXPECT_EQ(0, memcmp(local_.data() + 3, remote_.data() + 7, kSize - 10));

  std::iota(remote_.begin(), remote_.end(), 9);
  ASSERT_TRUE(a_->run(OpKind::get, route, 0, 0, kSize, 30s).ok());
  ASSERT_TRUE(copy(hostRegion(local_), device).ok());
  EXPECT_EQ(local_, remote_);
  gpu.release(device.ptr);
}

TEST_F(EngineTest, startsAfterTheEventThatItWasGiven) {
  Backend& gpu = **findBackend(DeviceKind::cuda);
  std::shared_ptr<DeviceEvent> event = *gpu.event(0);
  auto transfer = a_->start(OpKind::put, route_, {{0, 0, 0, 0, 1, kSize}}, {}, event);
  EXPECT_EQ(a_->wait(*transfer, 20ms).code(), Code::deadlineExceeded);
  EXPECT_EQ(remote_, std::vector<char>(kSize));
  ASSERT_TRUE(event->signal().ok());
  EXPECT_TRUE(a_->wait(*transfer, 30s).ok());
  EXPECT_EQ(local_, remote_);
}

TEST_F(EngineTest, aTransferWhoseEventHasNotPassedCanBeCancelled) {
  Backend& gpu = **findBackend(DeviceKind::cuda);
  std::shared_ptr<DeviceEvent> event = *gpu.event(0);
  auto transfer = a_->start(OpKind::put, route_, {{0, 0, 0, 0, 1, kSize}}, {}, event);
  EXPECT_EQ(a_->cancel(*transfer).code(), Code::cancelled);
  ASSERT_TRUE(event->signal().ok());
  EXPECT_EQ(remote_, std::vector<char>(kSize));
}

TEST_F(EngineTest, aStagedTransferReportsItsFailedPiece) {
  Backend& gpu = **findBackend(DeviceKind::cuda);
  Region device = *gpu.allocate(0, kSize);
  Route route = route_;
  route.local = device;
  route.staged = true;
  faults_->failNth(2, error(Code::failed, "piece two"));
  Status status = a_->run(OpKind::put, route, 0, 0, kSize, 30s);
  EXPECT_THAT(status.message(), HasSubstr("piece two"));
  EXPECT_TRUE(a_->run(OpKind::put, route, 0, 0, kSize, 30s).ok());
  gpu.release(device.ptr);
}

}  // namespace
}  // namespace hmc
