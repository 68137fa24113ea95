#include "fakes/fake_accelerator.h"

#include <gtest/gtest.h>

#include "memory/copy.h"
#include "unit/memory/host_region.h"

namespace hmc {
namespace {

using Call = FakeAccelerator::Call;

// A copy that idles for an hour shows who forgot to wait for it.
FakeOptions idling() {
  FakeOptions options;
  options.delay = std::chrono::hours(1);
  return options;
}

DeviceQueue own(const Region& region) {
  return {region.device};
}

Status drain(FakeAccelerator& fake, const DeviceQueue& queue) {
  auto event = std::move(fake.event(queue.device.index)).value();
  Status recorded = event->record(queue);
  return recorded.ok() ? waitFor(*event, std::chrono::seconds(60)) : recorded;
}

TEST(FakeAcceleratorDeathTest, crashesTheProcessorThatTouchesItsMemory) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  FakeAccelerator fake;
  auto region = fake.allocate(0, 4096);
  ASSERT_TRUE(region.ok());
  EXPECT_DEATH(*static_cast<volatile char*>(region->ptr) = 1, "");
}

TEST(FakeAccelerator, leavesCopiesUndoneUntilSomebodyAsks) {
  FakeAccelerator fake(idling());
  auto region = fake.allocate(0, 4);
  std::string bytes = "abcd";
  std::string back = "....";
  EXPECT_TRUE(fake.copyAll(*region, host(bytes), own(*region)).ok());
  EXPECT_TRUE(fake.copyAll(host(back), *region, own(*region)).ok());
  EXPECT_EQ(back, "....");
  EXPECT_TRUE(drain(fake, own(*region)).ok());
  EXPECT_EQ(back, "abcd");
}

TEST(FakeAccelerator, keepsStreamsApart) {
  FakeAccelerator fake(idling());
  auto region = fake.allocate(1, 4);
  auto stream = fake.createStream(1);
  ASSERT_TRUE(stream.ok());
  std::string bytes = "abcd";
  std::string back = "....";
  EXPECT_TRUE(fake.copyAll(*region, host(bytes), *stream).ok());
  EXPECT_TRUE(fake.copyAll(host(back), *region, own(*region)).ok());
  EXPECT_TRUE(drain(fake, own(*region)).ok());
  EXPECT_EQ(back, std::string(4, '\0'));
  EXPECT_TRUE(drain(fake, *stream).ok());
  EXPECT_TRUE(fake.copyAll(host(back), *region, own(*region)).ok());
  EXPECT_TRUE(drain(fake, own(*region)).ok());
  EXPECT_EQ(back, "abcd");
}

TEST(FakeQueue, runsCopiesAMomentLaterByItself) {
  FakeQueue queue("test", std::chrono::milliseconds(1), [] { return true; });
  std::string from = "abcd";
  std::string to = "....";
  queue.push({{to.data(), from.data(), 4}});
  auto patience = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (queue.done() == 0 && std::chrono::steady_clock::now() < patience) {
    std::this_thread::yield();
  }
  ASSERT_EQ(queue.done(), 1u);
  EXPECT_EQ(to, "abcd");
}

TEST(FakeAccelerator, finishesQueuedCopiesBeforeItsMemoryGoes) {
  FakeAccelerator fake(idling());
  auto region = fake.allocate(0, 4);
  std::string back = "....";
  EXPECT_TRUE(fake.copyAll(host(back), *region, own(*region)).ok());
  EXPECT_TRUE(fake.release(region->ptr).ok());
  EXPECT_EQ(back, std::string(4, '\0'));
}

TEST(FakeAccelerator, runsNothingOnAStalledQueueUntilItIsLetGo) {
  FakeAccelerator fake;
  auto region = fake.allocate(0, 4);
  std::string back = "....";
  EXPECT_TRUE(fake.stall(own(*region), true).ok());
  EXPECT_TRUE(fake.copyAll(host(back), *region, own(*region)).ok());
  auto event = std::move(fake.event(0)).value();
  EXPECT_TRUE(event->record(own(*region)).ok());
  EXPECT_EQ(waitFor(*event, std::chrono::milliseconds(50)).code(), Code::deadlineExceeded);
  EXPECT_EQ(back, "....");
  EXPECT_TRUE(fake.stall(own(*region), false).ok());
  EXPECT_TRUE(waitFor(*event, std::chrono::seconds(60)).ok());
  EXPECT_EQ(back, std::string(4, '\0'));
}

TEST(FakeAccelerator, failsTheCallThatATestPicked) {
  FakeAccelerator fake;
  fake.failNext(Call::allocate, Status(Code::exhausted, "no memory left"), 2);
  auto first = fake.allocate(0, 4096);
  EXPECT_TRUE(first.ok());
  EXPECT_EQ(fake.allocate(0, 4096).status().message(), "no memory left");
  EXPECT_TRUE(fake.allocate(0, 4096).ok());
  EXPECT_EQ(fake.live(), 2u);

  std::string bytes = "abcd";
  fake.failNext(Call::copy, Status(Code::failed, "bus error"));
  EXPECT_EQ(fake.copyAll(*first, host(bytes), own(*first)).message(), "bus error");
  EXPECT_TRUE(fake.copyAll(*first, host(bytes), own(*first)).ok());
  fake.failNext(Call::share, Status(Code::unsupported, "no IPC"));
  EXPECT_EQ(fake.share(*first, ShareFor::process).status().message(), "no IPC");
  auto share = fake.share(*first, ShareFor::process);
  ASSERT_TRUE(share.ok());
  fake.failNext(Call::attach, Status(Code::failed, "no peer access"));
  EXPECT_EQ(fake.attach(*share, nullptr).status().message(), "no peer access");
  EXPECT_TRUE(fake.attach(*share, nullptr).ok());
  fake.failNext(Call::pin, Status(Code::exhausted, "no page left"));
  EXPECT_EQ(fake.pin(host(bytes)).status().message(), "no page left");
}

TEST(FakeAccelerator, isLostForGoodOnceADeviceFailed) {
  FakeAccelerator fake(idling());
  auto region = fake.allocate(0, 4);
  auto other = fake.allocate(1, 4);
  std::string back = "....";
  EXPECT_TRUE(fake.copyAll(host(back), *region, own(*region)).ok());
  auto event = std::move(fake.event(0)).value();
  EXPECT_TRUE(event->record(own(*region)).ok());
  fake.failDevice(0, Status(Code::failed, "uncorrectable memory error"));
  EXPECT_EQ(waitFor(*event, std::chrono::seconds(60)).message(), "uncorrectable memory error");
  EXPECT_FALSE(fake.copyAll(host(back), *region, own(*region)).ok());
  EXPECT_FALSE(fake.allocate(0, 4).ok());
  EXPECT_TRUE(fake.release(region->ptr).ok());
  EXPECT_EQ(back, "....") << "what was queued never ran";
  EXPECT_TRUE(fake.copyAll(host(back), *other, own(*other)).ok());
  EXPECT_TRUE(drain(fake, own(*other)).ok());
  EXPECT_EQ(back, std::string(4, '\0'));
}

TEST(FakeAccelerator, countsWhatIsPinnedAndCopiesOfWhatIsNot) {
  FakeAccelerator fake;
  auto region = fake.allocate(0, 4096);
  std::string bytes(4096, 'x');
  {
    auto pinned = fake.pin(host(bytes));
    ASSERT_TRUE(pinned.ok());
    EXPECT_EQ(fake.pinned(), 1u);
    EXPECT_EQ(fake.pin({bytes.data() + 100, 10, Device{}}).status().code(), Code::alreadyExists);
    EXPECT_TRUE(fake.copyAll(*region, host(bytes), own(*region)).ok());
    EXPECT_EQ(fake.unpinnedCopies(), 0u);
    EXPECT_TRUE(drain(fake, own(*region)).ok());
  }
  EXPECT_EQ(fake.pinned(), 0u);
  EXPECT_TRUE(fake.copyAll(host(bytes), *region, own(*region)).ok());
  EXPECT_EQ(fake.unpinnedCopies(), 1u);
}

TEST(FakeAccelerator, showsTheDevicesThatAProcessMaySeeInItsOrder) {
  FakeOptions options;
  options.deviceCount = 3;
  FakeAccelerator all(options);
  options.visible = {2, 0};
  FakeAccelerator some(options);
  ASSERT_EQ(some.facts().deviceCount(), 2);
  EXPECT_EQ(some.facts().devices[0].uuid, all.facts().devices[2].uuid);
  EXPECT_EQ(*some.indexOf(all.facts().devices[0].uuid), 1);
  EXPECT_EQ(some.indexOf(all.facts().devices[1].uuid).status().code(), Code::unsupported);
}

TEST(FakeAccelerator, refusesWhatARealOneWouldNotDo) {
  FakeAccelerator fake;
  auto region = fake.allocate(0, 4096);
  std::string bytes(4096, 'x');
  const DeviceQueue queue = own(*region);
  EXPECT_FALSE(fake.copyAll(host(bytes), host(bytes), queue).ok());
  EXPECT_FALSE(fake.copyAll(region->slice(10, 100), region->slice(0, 100), queue).ok());
  EXPECT_FALSE(fake.copyAll(*region, {bytes.data(), 10, Device{DeviceKind::hip, 0}}, queue).ok());
  Region wrongDevice = *region;
  wrongDevice.device.index = 1;
  EXPECT_FALSE(fake.copyAll(wrongDevice, host(bytes), own(wrongDevice)).ok());
  EXPECT_FALSE(fake.copyAll(*region, host(bytes), own(wrongDevice)).ok());
  EXPECT_FALSE(fake.copyAll({region->at(1), 4096, region->device}, host(bytes), queue).ok());
  EXPECT_FALSE(fake.copyAll(*region, host(bytes), DeviceQueue{region->device, &bytes}).ok());
  EXPECT_FALSE(fake.copyAll(*region, host(bytes), DeviceQueue{Device{DeviceKind::cuda, 7}}).ok());
}

}  // namespace
}  // namespace hmc
