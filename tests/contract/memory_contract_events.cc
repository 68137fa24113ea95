#include <vector>

#include "contract/memory_contract.h"

namespace hmc {

// The devices of a backend, and queues of each that have something to wait for.
class MemoryContractEvents : public MemoryContract {
 protected:
  bool passed(DeviceEvent& event) {
    auto answer = event.passed();
    EXPECT_TRUE(answer.ok()) << answer.status().toString();
    return answer.ok() && *answer;
  }
  // Holds a queue until it is signalled; null where the host's signals hold no queue.
  std::unique_ptr<DeviceEvent> heldBy(const DeviceQueue& queue) {
    auto event = makeEvent(queue.device.index);
    Status held = event->hold(queue);
    if (held.code() == Code::unsupported) return nullptr;
    EXPECT_TRUE(held.ok()) << held.toString();
    return event;
  }
  // `after` passes, but not before the gate is signalled.
  void expectHeldUntilSignalled(DeviceEvent& gate, DeviceEvent& after) {
    for (int i = 0; i < 1000; ++i) ASSERT_FALSE(passed(after));
    EXPECT_TRUE(gate.signal().ok());
    EXPECT_TRUE(waitFor(after, kPatience).ok());
  }
  Device device(int index) const { return {backend->facts().kind, index}; }
};

// Host memory that copies of a stuck queue may use without blocking.
class PinnedBytes {
 public:
  PinnedBytes(Backend& backend, std::string content)
      : bytes(std::move(content)), pinned_(backend.pin({bytes.data(), bytes.size(), Device{}})) {
    EXPECT_TRUE(pinned_.ok()) << pinned_.status().toString();
  }
  Region region() { return {bytes.data(), bytes.size(), Device{}}; }
  std::string bytes;

 private:
  const Result<std::unique_ptr<PinnedMemory>> pinned_;
};

TEST_P(MemoryContractEvents, passWhenWhatWasEnqueuedBeforeHasRun) {
  for (int index = 0; index <= lastDevice(); ++index) {
    Region region = allocate(1 << 20, index);
    std::string bytes = pattern(1 << 20, 7);
    std::string back(1 << 20, '?');
    const DeviceQueue queue{region.device};
    EXPECT_TRUE(enqueue(region, hostRegion(bytes), queue).ok());
    EXPECT_TRUE(enqueue(hostRegion(back), region, queue).ok());
    auto event = recorded(queue);
    while (!passed(*event)) {
    }
    EXPECT_TRUE(back == bytes);
    EXPECT_TRUE(passed(*event)) << "once passed, always passed";
    release(region);
  }
}

TEST_P(MemoryContractEvents, startOverWhenTheyAreRecordedAgain) {
  Region region = allocate(4096);
  auto event = makeEvent(0);
  for (unsigned round = 0; round < 5; ++round) {
    std::string bytes = pattern(4096, round);
    EXPECT_TRUE(enqueue(region, hostRegion(bytes), {region.device}).ok());
    EXPECT_TRUE(event->record({region.device}).ok());
    EXPECT_TRUE(waitFor(*event, kPatience).ok());
    EXPECT_EQ(read(region), bytes);
  }
  release(region);
}

TEST_P(MemoryContractEvents, havePassedNeitherFreshNorForLongWithoutASignal) {
  auto event = makeEvent(lastDevice());
  EXPECT_FALSE(passed(*event));
  EXPECT_EQ(waitFor(*event, std::chrono::milliseconds(1)).code(), Code::deadlineExceeded);
  EXPECT_TRUE(event->signal().ok());
  EXPECT_TRUE(passed(*event));
  EXPECT_TRUE(event->signal().ok());
}

TEST_P(MemoryContractEvents, thatAreRecordedLeaveTheirSignalToTheQueue) {
  auto event = recorded({device(0)});
  EXPECT_EQ(event->signal().code(), Code::invalidArgument);
  EXPECT_TRUE(waitFor(*event, kPatience).ok());
}

TEST_P(MemoryContractEvents, areRecordedOnQueuesOfTheirDeviceOnly) {
  auto event = makeEvent(0);
  EXPECT_EQ(event->record({Device{otherKind(), 0}}).code(), Code::invalidArgument);
  EXPECT_EQ(event->record({device(lastDevice() + 1)}).code(), Code::invalidArgument);
  EXPECT_EQ(event->hold({device(lastDevice() + 1)}).code(), Code::invalidArgument);
  if (lastDevice() > 0) {
    EXPECT_EQ(event->record({device(1)}).code(), Code::invalidArgument);
  }
  EXPECT_FALSE(backend->event(-1).ok());
  EXPECT_FALSE(backend->event(lastDevice() + 1).ok());
}

TEST_P(MemoryContractEvents, holdAQueueUntilTheHostSignals) {
  Region region = allocate(4096);
  const DeviceQueue queue{region.device};
  auto gate = heldBy(queue);
  if (!gate) GTEST_SKIP() << "this kind has no queue that waits for the host";
  PinnedBytes bytes(*backend, pattern(4096, 1));
  PinnedBytes back(*backend, std::string(4096, '?'));
  // Nothing here may block while the queue is stuck.
  EXPECT_TRUE(enqueue(region, bytes.region(), queue).ok());
  EXPECT_TRUE(enqueue(back.region(), region, queue).ok());
  auto after = recorded(queue);
  for (int i = 0; i < 1000; ++i) ASSERT_FALSE(passed(*after));
  EXPECT_EQ(back.bytes, std::string(4096, '?'));
  EXPECT_TRUE(gate->signal().ok());
  EXPECT_TRUE(waitFor(*after, kPatience).ok());
  EXPECT_EQ(back.bytes, bytes.bytes);
  release(region);
}

TEST_P(MemoryContractEvents, letGoOfWhatTheyHoldWhenTheyAreDestroyed) {
  auto gate = heldBy({device(0)});
  if (!gate) GTEST_SKIP() << "this kind has no queue that waits for the host";
  auto after = recorded({device(0)});
  EXPECT_FALSE(passed(*after));
  gate.reset();
  EXPECT_TRUE(waitFor(*after, kPatience).ok());
}

TEST_P(MemoryContractEvents, holdQueuesOfOtherDevices) {
  if (lastDevice() == 0) GTEST_SKIP() << "there is one device only";
  Region first = allocate(4096, 0);
  Region second = allocate(4096, 1);
  auto gate = heldBy({first.device});
  if (!gate) GTEST_SKIP() << "this kind has no queue that waits for the host";
  PinnedBytes bytes(*backend, pattern(4096, 9));
  PinnedBytes back(*backend, std::string(4096, '?'));
  EXPECT_TRUE(enqueue(first, bytes.region(), {first.device}).ok());
  EXPECT_TRUE(recorded({first.device})->hold({second.device}).ok());
  EXPECT_TRUE(enqueue(second, first, {second.device}).ok());
  EXPECT_TRUE(enqueue(back.region(), second, {second.device}).ok());
  auto after = recorded({second.device});
  expectHeldUntilSignalled(*gate, *after);
  EXPECT_EQ(back.bytes, bytes.bytes);
  release(first);
  release(second);
}

TEST_P(MemoryContractEvents, orderTheStreamsOfUsers) {
  if (!GetParam().makeStream) GTEST_SKIP() << "there are no streams";
  Region region = allocate(4096);
  auto stream = GetParam().makeStream(*backend, 0);
  ASSERT_TRUE(stream.ok()) << stream.status().toString();
  PinnedBytes bytes(*backend, pattern(4096, 5));
  PinnedBytes back(*backend, std::string(4096, '?'));
  // The stream waits for the host, our queue for the stream: a put that starts after a kernel.
  // Where streams cannot wait for the host, it is not known when the stream gets there.
  auto gate = heldBy(*stream);
  EXPECT_TRUE(enqueue(region, bytes.region(), *stream).ok());
  auto kernel = recorded(*stream);
  EXPECT_TRUE(kernel->hold({region.device}).ok());
  EXPECT_TRUE(enqueue(back.region(), region, {region.device}).ok());
  auto after = recorded({region.device});
  if (gate) {
    expectHeldUntilSignalled(*gate, *after);
  } else {
    EXPECT_TRUE(waitFor(*after, kPatience).ok());
  }
  EXPECT_EQ(back.bytes, bytes.bytes);
  release(region);
}

INSTANTIATE_TEST_SUITE_P(All, MemoryContractEvents, testing::ValuesIn(memoryContractCases()),
                         memoryContractName);

}  // namespace hmc
