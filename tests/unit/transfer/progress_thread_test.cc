#include "transfer/progress_thread.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <atomic>
#include <cstring>
#include <thread>
#include <utility>

#include "base/error.h"
#include "memory/backends.h"
#include "memory/copy.h"
#include "transfer/completion_list.h"
#include "unit/transfer/engine_fixture.h"

namespace hmc {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::UnorderedElementsAre;

class ProgressThreadTest : public PatientFixture {
 protected:
  std::shared_ptr<TransferState> put(size_t size) {
    return a_->start(OpKind::put, route_, {{0, 0, 0, 0, 1, size}}, {});
  }
  // The ids that arrive until there are so many, in the order of their arrival.
  static std::vector<uint64_t> takeAll(CompletionList& list, size_t count) {
    std::vector<uint64_t> ids;
    pollfd event{list.fd(), POLLIN, 0};
    while (ids.size() < count && poll(&event, 1, 60000) == 1) {
      for (uint64_t id : list.take()) ids.push_back(id);
    }
    return ids;
  }
  std::unique_ptr<CompletionList> list_ = *CompletionList::create();
};

TEST_F(ProgressThreadTest, postsAndPollsWhatNobodyWaitsFor) {
  faults_->mostPerPost = 1;
  faults_->delay = 3;
  auto transfer = put(kSize);
  ASSERT_TRUE(list_->watch(transfer, 4).ok());
  EXPECT_THAT(takeAll(*list_, 1), ElementsAre(4));
  EXPECT_TRUE(a_->wait(*transfer, 0s).ok());
  EXPECT_EQ(local_, remote_);
}

TEST_F(ProgressThreadTest, beginsATransferThatComesWhileItSleepsInTheTransport) {
  faults_->stalled = true;
  ASSERT_TRUE(list_->watch(put(1000), 1).ok());
  // In the first of them the bytes move, and nothing ends the second.
  ASSERT_TRUE(awaitSleeps(2));
  faults_->mostPerPost = 0;
  auto second = put(2000);
  faults_->mostPerPost = 8;
  faults_->stalled = false;
  ASSERT_TRUE(list_->watch(second, 2).ok());
  EXPECT_THAT(takeAll(*list_, 2), UnorderedElementsAre(1, 2));
}

TEST_F(ProgressThreadTest, looksAgainWhenALinkWasClosed) {
  faults_->mostPerPost = 0;
  auto transfer = put(kSize);
  ASSERT_TRUE(list_->watch(transfer, 1).ok());
  link_->close(error(Code::disconnected, "closed from outside"));
  a_->kick();
  EXPECT_THAT(takeAll(*list_, 1), ElementsAre(1));
  EXPECT_EQ(a_->wait(*transfer, 0s).code(), Code::disconnected);
}

TEST_F(ProgressThreadTest, aTransferThatAnotherThreadEndsArrivesToo) {
  faults_->mostPerPost = 0;
  auto transfer = put(kSize);
  ASSERT_TRUE(list_->watch(transfer, 1).ok());
  EXPECT_EQ(a_->cancel(*transfer).code(), Code::cancelled);
  EXPECT_THAT(takeAll(*list_, 1), ElementsAre(1));
}

TEST_F(ProgressThreadTest, aFailedPieceEndsTheTransferWithItsSentence) {
  faults_->mostPerPost = 1;
  faults_->failNth(5, error(Code::permissionDenied, "piece five"));
  auto transfer = put(kSize);
  ASSERT_TRUE(list_->watch(transfer, 1).ok());
  EXPECT_THAT(takeAll(*list_, 1), ElementsAre(1));
  EXPECT_THAT(a_->wait(*transfer, 0s).message(), HasSubstr("piece five"));
}

TEST_F(ProgressThreadTest, movesDeviceMemoryThroughTheHost) {
  Backend& gpu = **findBackend(DeviceKind::cuda);
  Region device = *gpu.allocate(1, kSize);
  ASSERT_TRUE(copy(device, hostRegion(local_)).ok());
  Route route = route_;
  route.local = device;
  route.registration = nullptr;
  route.staged = true;
  ASSERT_TRUE(
      list_->watch(a_->start(OpKind::put, route, {{3, 0, 7, 0, 1, kSize - 10}}, {}), 1).ok());
  EXPECT_THAT(takeAll(*list_, 1), ElementsAre(1));
  EXPECT_EQ(0, memcmp(local_.data() + 3, remote_.data() + 7, kSize - 10));
  gpu.release(device.ptr);
}

TEST_F(ProgressThreadTest, waitsForEventsAndLetsOthersPass) {
  std::shared_ptr<DeviceEvent> event = *(*findBackend(DeviceKind::cuda))->event(0);
  auto first = a_->start(OpKind::put, route_, {{0, 0, 0, 0, 1, 100}}, {}, event);
  ASSERT_TRUE(list_->watch(first, 1).ok());
  faults_->mostPerPost = 0;
  auto second = put(kSize);
  faults_->mostPerPost = 8;
  ASSERT_TRUE(list_->watch(second, 2).ok());
  EXPECT_THAT(takeAll(*list_, 1), ElementsAre(2));
  EXPECT_FALSE(first->done());
  ASSERT_TRUE(event->signal().ok());
  EXPECT_THAT(takeAll(*list_, 1), ElementsAre(1));
}

TEST_F(ProgressThreadTest, aListMayGoWhileItsTransfersMove) {
  faults_->mostPerPost = 1;
  for (int round = 0; round < 100; ++round) {
    std::vector<std::shared_ptr<TransferState>> transfers;
    auto list = *CompletionList::create();
    for (uint64_t i = 0; i < 4; ++i) {
      transfers.push_back(put(200000));
      ASSERT_TRUE(list->watch(transfers.back(), i).ok());
    }
    if (round % 2 == 0) takeAll(*list, 1);
    list.reset();
    for (auto& transfer : transfers) ASSERT_TRUE(a_->wait(*transfer, 60s).ok());
  }
}

TEST_F(ProgressThreadTest, whatIsNotWatchedIsLeftToItsOwner) {
  ASSERT_TRUE(list_->watch(put(8), 1).ok());
  EXPECT_THAT(takeAll(*list_, 1), ElementsAre(1));
  auto transfer = put(kSize);
  ASSERT_TRUE(list_->watch(put(8), 2).ok());
  EXPECT_THAT(takeAll(*list_, 1), ElementsAre(2));
  EXPECT_FALSE(transfer->done()) << "it has more pieces than one post takes";
  EXPECT_TRUE(a_->wait(*transfer, 60s).ok());
}

}  // namespace
}  // namespace hmc
