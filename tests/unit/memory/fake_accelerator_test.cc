#include "fakes/fake_accelerator.h"

#include <gtest/gtest.h>

namespace hmc {
namespace {

using Call = FakeAccelerator::Call;

Region host(std::string& bytes) {
  return {bytes.data(), bytes.size(), Device{}};
}

FakeOptions withDelay(std::chrono::milliseconds delay) {
  FakeOptions options;
  options.delay = delay;
  return options;
}

TEST(FakeAcceleratorDeathTest, crashesTheProcessorThatTouchesItsMemory) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  FakeAccelerator fake;
  auto region = fake.allocate(0, 4096);
  ASSERT_TRUE(region.ok());
  EXPECT_DEATH(*static_cast<volatile char*>(region->ptr) = 1, "");
}

TEST(FakeAccelerator, leavesStreamCopiesUndoneUntilSomebodyWaits) {
  FakeAccelerator fake(withDelay(std::chrono::hours(1)));
  auto region = fake.allocate(0, 4);
  std::string bytes = "abcd";
  std::string back = "....";
  Stream stream{region->device};
  EXPECT_TRUE(fake.copy(*region, host(bytes), &stream).ok());
  EXPECT_TRUE(fake.copy(host(back), *region, &stream).ok());
  EXPECT_EQ(back, "....");
  EXPECT_TRUE(fake.wait(stream).ok());
  EXPECT_EQ(back, "abcd");
}

TEST(FakeAccelerator, runsWhatIsQueuedBeforeASynchronousCopy) {
  FakeAccelerator fake(withDelay(std::chrono::hours(1)));
  auto region = fake.allocate(0, 4);
  std::string bytes = "abcd";
  std::string back = "....";
  Stream stream{region->device};
  EXPECT_TRUE(fake.copy(*region, host(bytes), &stream).ok());
  EXPECT_TRUE(fake.copy(host(back), *region, nullptr).ok());
  EXPECT_EQ(back, "abcd");
}

TEST(FakeAccelerator, keepsStreamsApart) {
  FakeAccelerator fake(withDelay(std::chrono::hours(1)));
  auto region = fake.allocate(1, 4);
  auto stream = fake.createStream(1);
  ASSERT_TRUE(stream.ok());
  std::string bytes = "abcd";
  std::string back = "....";
  EXPECT_TRUE(fake.copy(*region, host(bytes), &*stream).ok());
  EXPECT_TRUE(fake.copy(host(back), *region, nullptr).ok());
  EXPECT_EQ(back, std::string(4, '\0'));
  EXPECT_TRUE(fake.wait(*stream).ok());
  EXPECT_TRUE(fake.copy(host(back), *region, nullptr).ok());
  EXPECT_EQ(back, "abcd");
}

TEST(FakeQueue, runsCopiesAMomentLaterByItself) {
  FakeQueue queue("test", std::chrono::milliseconds(1));
  std::string from = "abcd";
  std::string to = "....";
  queue.push({to.data(), from.data(), 4});
  auto patience = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (queue.done() == 0 && std::chrono::steady_clock::now() < patience) {
    std::this_thread::yield();
  }
  ASSERT_EQ(queue.done(), 1u);
  EXPECT_EQ(to, "abcd");
}

TEST(FakeAccelerator, finishesQueuedCopiesBeforeItsMemoryGoes) {
  FakeAccelerator fake(withDelay(std::chrono::hours(1)));
  auto region = fake.allocate(0, 4);
  std::string back = "....";
  Stream stream{region->device};
  EXPECT_TRUE(fake.copy(host(back), *region, &stream).ok());
  EXPECT_TRUE(fake.release(region->ptr).ok());
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
  EXPECT_EQ(fake.copy(*first, host(bytes), nullptr).message(), "bus error");
  EXPECT_TRUE(fake.copy(*first, host(bytes), nullptr).ok());
  fake.failNext(Call::share, Status(Code::unsupported, "no IPC"));
  EXPECT_EQ(fake.share(*first).status().message(), "no IPC");
  auto share = fake.share(*first);
  ASSERT_TRUE(share.ok());
  fake.failNext(Call::attach, Status(Code::failed, "no peer access"));
  EXPECT_EQ(fake.attach(*share).status().message(), "no peer access");
  EXPECT_TRUE(fake.attach(*share).ok());
}

TEST(FakeAccelerator, refusesWhatARealOneWouldNotDo) {
  FakeAccelerator fake;
  auto region = fake.allocate(0, 4096);
  std::string bytes(4096, 'x');
  EXPECT_FALSE(fake.copy(host(bytes), host(bytes), nullptr).ok());
  EXPECT_FALSE(fake.copy(region->slice(10, 100), region->slice(0, 100), nullptr).ok());
  EXPECT_FALSE(fake.copy(*region, {bytes.data(), 10, Device{DeviceKind::hip, 0}}, nullptr).ok());
  Region wrongDevice = *region;
  wrongDevice.device.index = 1;
  EXPECT_FALSE(fake.copy(wrongDevice, host(bytes), nullptr).ok());
  EXPECT_FALSE(fake.copy({region->at(1), 4096, region->device}, host(bytes), nullptr).ok());
  Stream unknown{region->device, &bytes};
  EXPECT_FALSE(fake.copy(*region, host(bytes), &unknown).ok());
  EXPECT_FALSE(fake.wait(Stream{Device{DeviceKind::cuda, 7}}).ok());
}

}  // namespace
}  // namespace hmc
