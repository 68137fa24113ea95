// Runs with HMC_MEMORY_PLUGIN providing a fake accelerator.

#include "fakes/fake_accelerator.h"
#include "ipc_fixture.h"
#include "memory/copy.h"

namespace hmc::ipc {
namespace {

constexpr size_t kSize = 10000;
const Device kGpu{DeviceKind::cuda, 0};

// Two processes' worth of ipc in one, memory of a device at the target, and a queue of that device
// that does nothing until it is let go.
class IpcDevice : public testing::Test {
 protected:
  void SetUp() override {
    region = must(gpu.allocate(0, kSize));
    registration = must(pair.target->registerRegion(region, Access::readWrite));
    local = must(pair.origin->registerRegion(hostRegion(bytes.data(), kSize), Access::read));
    remote = pair.import(*registration);
    ASSERT_EQ(pair.pathOf(*remote), PathKind::mappedDevice);
    stall(true);
  }
  void TearDown() override {
    stall(false);
    remote.reset();
    EXPECT_TRUE(gpu.release(region.ptr).ok());
  }
  void stall(bool stalled) { ASSERT_TRUE(gpu.stall({kGpu}, stalled).ok()); }
  void post(OpKind kind, Completion& completion) {
    const Op op{kind, bytes.data(), local.get(), remote.get(), 0, kSize, &completion};
    ASSERT_EQ(pair.link->post({&op, 1}), 1u);
  }
  void finish(const Completion& completion) {
    const Deadline deadline(kPatience);
    while (!completion.done() && !deadline.passed()) pair.origin->progress(deadline);
    ASSERT_TRUE(completion.done());
  }

  // The plugin's: its tables can be asked from here.
  FakeAccelerator& gpu = static_cast<FakeAccelerator&>(*must(findBackend(kGpu)));
  IpcPair pair;
  std::string bytes = std::string(kSize, 'p');
  Region region;
  std::unique_ptr<Registration> registration;
  std::unique_ptr<Registration> local;
  std::unique_ptr<RemoteMemory> remote;
};

TEST_F(IpcDevice, postAndProgressDoNotWaitForADeviceThatIsStuck) {
  Completion completion(1);
  post(OpKind::put, completion);
  for (int i = 0; i < 100; ++i) {
    EXPECT_FALSE(pair.origin->progress(std::chrono::microseconds(10)));
    EXPECT_FALSE(completion.done());
  }
  stall(false);
  finish(completion);
  EXPECT_TRUE(completion.status().ok()) << completion.status().toString();
  std::string back(kSize, '?');
  EXPECT_TRUE(copy(hostRegion(back.data(), kSize), region).ok());
  EXPECT_EQ(back, bytes);
}

TEST_F(IpcDevice, aClosedLinkEndsItsCopiesWhenTheDeviceIsDoneWithThem) {
  Completion completion(1);
  post(OpKind::get, completion);
  pair.link->close(Status(Code::disconnected, "the peer is gone"));
  pair.origin->progress(std::chrono::microseconds(10));
  EXPECT_FALSE(completion.done()) << "the device may still write our memory";
  stall(false);
  finish(completion);
  EXPECT_EQ(completion.status().message(), "the peer is gone");
}

TEST_F(IpcDevice, aDestroyedLinkHasNothingUnderWay) {
  Completion completion(1);
  post(OpKind::get, completion);
  stall(false);
  pair.link.reset();
  EXPECT_TRUE(completion.done());
}

TEST_F(IpcDevice, memoryIsReleasedWhenTheDeviceIsDoneWithIt) {
  Completion completion(1);
  post(OpKind::put, completion);
  bool released = false;
  remote->revoke([&](const Status&) { released = true; });
  pair.origin->progress(std::chrono::microseconds(10));
  EXPECT_FALSE(released) << "the device may still write the peer's memory";
  stall(false);
  finish(completion);
  EXPECT_TRUE(released);
  Completion late(1);
  post(OpKind::put, late);
  EXPECT_EQ(late.status().code(), Code::notFound) << late.status().toString();
}

TEST_F(IpcDevice, memoryThatIsDroppedEarlyStaysMappedUntilTheDeviceIsDoneWithIt) {
  auto addresses = must(gpu.reserve(kSize, nullptr));
  void* const place = addresses->region.ptr;
  remote = must(pair.link->importKey(registration->key(), kPatience, place));
  Completion completion(1);
  post(OpKind::put, completion);
  remote.reset();
  EXPECT_TRUE(gpu.locate(place).ok()) << "the device may still write there";
  stall(false);
  finish(completion);
  EXPECT_TRUE(completion.status().ok()) << completion.status().toString();
  EXPECT_FALSE(gpu.locate(place).ok()) << "nobody uses it any more";
}

// Exporting takes longer than a small put, which needs none of it.
TEST_F(IpcDevice, memoryIsExportedWhenAPeerFirstNeedsItsKeyAndTheReasonWhyNotTravels) {
  auto first = must(pair.target->registerRegion(region, Access::read));
  gpu.failNext(FakeAccelerator::Call::share, Status(Code::unsupported, "it is out of handles"));
  auto second = must(pair.target->registerRegion(region, Access::read));
  Status refused = pair.link->importKey(first->key(), kPatience, nullptr).status();
  EXPECT_EQ(refused.code(), Code::unsupported);
  EXPECT_NE(refused.message().find("it is out of handles"), std::string::npos) << refused.message();
  EXPECT_TRUE(pair.link->importKey(second->key(), kPatience, nullptr).ok());
  EXPECT_EQ(second->key(), second->key());
}

TEST_F(IpcDevice, aDeviceThatCannotCopyFailsTheOperationAlone) {
  gpu.failNext(FakeAccelerator::Call::copy, Status(Code::failed, "uncorrectable error"));
  Completion first(1);
  post(OpKind::put, first);
  ASSERT_TRUE(first.done());
  EXPECT_EQ(first.status().message(), "uncorrectable error");
  stall(false);
  Completion second(1);
  post(OpKind::put, second);
  finish(second);
  EXPECT_TRUE(second.status().ok()) << second.status().toString();
}

}  // namespace
}  // namespace hmc::ipc
