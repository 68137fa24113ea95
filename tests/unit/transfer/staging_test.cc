// Runs with HMC_MEMORY_PLUGIN providing a fake accelerator.

#include "transfer/staging.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <future>

#include "base/error.h"
#include "fakes/fake_accelerator.h"
#include "memory/backends.h"
#include "memory/copy.h"
#include "unit/transfer/engine_fixture.h"

namespace hmc {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

const Device kGpu{DeviceKind::cuda, 0};

// Local memory lies on a device that the transport cannot touch.
class StagingTest : public EngineFixture {
 protected:
  void SetUp() override {
    EngineFixture::SetUp();
    device_ = *gpu_.allocate(0, kSize);
    ASSERT_TRUE(copy(device_, hostRegion(local_)).ok());
    route_.local = device_;
    route_.registration = nullptr;
    route_.staged = true;
  }
  void TearDown() override { EXPECT_TRUE(gpu_.release(device_.ptr).ok()); }
  void stall(bool stalled) { ASSERT_TRUE(gpu_.stall({kGpu}, stalled).ok()); }
  std::shared_ptr<TransferState> start(OpKind kind) {
    return a_->start(kind, route_, {{0, 0, 0, 0, 1, kSize}}, {});
  }

  // The plugin's: it can be told what to do from here.
  FakeAccelerator& gpu_ = static_cast<FakeAccelerator&>(**findBackend(kGpu));
  Region device_;
};

TEST_F(StagingTest, aPutDoesNotWaitForADeviceThatIsStuck) {
  stall(true);
  auto transfer = start(OpKind::put);
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(a_->test(*transfer));
  EXPECT_EQ(remote_, std::vector<char>(kSize));
  stall(false);
  EXPECT_TRUE(a_->wait(*transfer, 30s).ok());
  EXPECT_EQ(local_, remote_);
}

TEST_F(StagingTest, aGetIsDoneWhenTheDeviceHasItsBytes) {
  std::iota(remote_.begin(), remote_.end(), 9);
  stall(true);
  auto transfer = start(OpKind::get);
  for (int i = 0; i < 1000; ++i) EXPECT_FALSE(a_->test(*transfer));
  stall(false);
  EXPECT_TRUE(a_->wait(*transfer, 30s).ok());
  ASSERT_TRUE(copy(hostRegion(local_), device_).ok());
  EXPECT_EQ(local_, remote_);
}

TEST_F(StagingTest, aCancelledTransferEndsWhenTheDeviceNoLongerTouchesTheMemory) {
  stall(true);
  auto transfer = start(OpKind::put);
  auto cancelled = std::async(std::launch::async, [&] { return a_->cancel(*transfer); });
  EXPECT_EQ(a_->wait(*transfer, 20ms).code(), Code::deadlineExceeded);
  stall(false);
  EXPECT_EQ(cancelled.get().code(), Code::cancelled);
  EXPECT_EQ(remote_, std::vector<char>(kSize));
}

TEST_F(StagingTest, aFailedDeviceCopyFailsTheTransferAlone) {
  for (OpKind kind : {OpKind::put, OpKind::get}) {
    gpu_.failNext(FakeAccelerator::Call::copy, error(Code::failed, "the second copy"), 2);
    EXPECT_THAT(a_->run(kind, route_, 0, 0, kSize, 30s).message(), HasSubstr("the second copy"));
    EXPECT_TRUE(a_->run(kind, route_, 0, 0, kSize, 30s).ok());
  }
}

TEST_F(StagingTest, slotsArePinnedForTheDevice) {
  const size_t before = gpu_.unpinnedCopies();
  ASSERT_TRUE(a_->run(OpKind::put, route_, 0, 0, kSize, 30s).ok());
  ASSERT_TRUE(a_->run(OpKind::get, route_, 0, 0, kSize, 30s).ok());
  EXPECT_EQ(gpu_.unpinnedCopies(), before);
}

}  // namespace
}  // namespace hmc
