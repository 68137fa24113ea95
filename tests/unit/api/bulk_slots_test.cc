// Runs with HMC_MEMORY_PLUGIN providing a device whose queues can be stalled.

#include <gmock/gmock.h>

#include <atomic>
#include <thread>

#include "api/bulk.h"
#include "api/bulk_messages.h"
#include "fakes/fake_accelerator.h"
#include "fakes/pattern.h"
#include "unit/node/fake_pair.h"

#if defined(__SANITIZE_THREAD__)
// A slot's reader is ordered after its writer by a message, which ThreadSanitizer cannot follow
// through a socket.
extern "C" __attribute__((visibility("default"))) const char* __tsan_default_suppressions() {
  return "race:hmc::FakeQueue::runEntry\n";
}
#endif

namespace hmc {
namespace {

using testing::HasSubstr;

constexpr Device kGpu{DeviceKind::cuda, 0};
constexpr size_t kSlot = 256;
constexpr size_t kBuffer = 2 * kBulkSlots * kSlot;

// Each put of b's starts one transfer.
struct Starts {
  TraceHook hook() { return {&hear, this}; }
  static void hear(void* self, const TraceEvent& event) {
    if (event.step == TraceEvent::Step::start) ++static_cast<Starts*>(self)->count;
  }
  std::atomic<size_t> count{0};
};

// b sends through a's buffer into memory of a's device.
class BulkSlots : public testing::Test {
 protected:
  Starts starts;
  FakePair pair{{FakeTransport("fake")}, {}, std::chrono::seconds(10), {}, starts.hook()};
  FakeAccelerator& gpu = static_cast<FakeAccelerator&>(*must(findBackend(kGpu)));
  std::shared_ptr<LocalMemory> here = FakePair::allocate(*pair.a, "buffer", kBuffer);
  std::shared_ptr<LocalMemory> there = FakePair::allocate(*pair.b, "buffer", kBuffer);
  Bulk receiver{pair.a, here};
  Bulk sender{pair.b, there};
  Connection fromB, toA;
  const std::string bytes = test::pattern(40 * kSlot + 1);
  std::shared_ptr<LocalMemory> into = FakePair::allocate(*pair.a, "", bytes.size(), kGpu);

  void SetUp() override {
    for (Connection* one : {&fromB, &toA}) one->turns = std::make_shared<BulkTurns>();
    fromB.peer = pair.a->peers().front();
    toA.peer = pair.toA;
    toA.buffer = pair.open("buffer");
  }
  Status send(Timeout timeout) {
    return sender.send(toA, {const_cast<char*>(bytes.data()), bytes.size(), Device{}},  // NOLINT
                       timeout);
  }
  // A device's copies from the host have a queue of their own.
  void stall(bool stalled) {
    for (uint8_t lane = 0; lane < DeviceQueue::kLanes; ++lane)
      ASSERT_TRUE(gpu.stall({kGpu, nullptr, lane}, stalled).ok());
  }
  std::string received() {
    std::string copied(bytes.size(), '\0');
    EXPECT_TRUE(copy({copied.data(), copied.size(), Device{}}, into->region()).ok());
    return copied;
  }
};

TEST_F(BulkSlots, areUsedAgainOnlyAfterTheyWereCopiedOut) {
  stall(true);
  std::thread receiving([&] {
    EXPECT_EQ(
        receiver.receive(fromB, into->region(), std::chrono::milliseconds(500)).status().code(),
        Code::deadlineExceeded);
  });
  EXPECT_EQ(send(std::chrono::milliseconds(500)).code(), Code::deadlineExceeded);
  EXPECT_LE(starts.count, kBulkSlots);
  stall(false);
  receiving.join();
}

TEST_F(BulkSlots, carryTheWholeOnceTheDeviceGoesOn) {
  stall(true);
  std::thread device([&] {
    while (starts.count < kBulkSlots) std::this_thread::yield();
    stall(false);
  });
  Status sent;
  std::thread sending([&] { sent = send(kDefaultTimeout); });
  auto size = receiver.receive(fromB, into->region(), kDefaultTimeout);
  for (auto* thread : {&device, &sending}) thread->join();
  EXPECT_TRUE(sent.ok()) << sent.toString();
  EXPECT_EQ(must(std::move(size)), bytes.size());
  EXPECT_EQ(gpu.unpinnedCopies(), 0U) << "slots are pinned";
  EXPECT_TRUE(received() == bytes);
}

TEST_F(BulkSlots, tellTheSenderWhenTheDeviceFails) {
  gpu.failNext(FakeAccelerator::Call::copy, Status(Code::failed, "the device is broken"), 3);
  Status sent;
  std::thread sending([&] { sent = send(kDefaultTimeout); });
  const Status received = receiver.receive(fromB, into->region(), kDefaultTimeout).status();
  sending.join();
  EXPECT_THAT(received.message(), HasSubstr("the device is broken"));
  EXPECT_THAT(sent.message(), HasSubstr("the device is broken"));
}

}  // namespace
}  // namespace hmc
