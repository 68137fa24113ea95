#include "memory/staging_buffer.h"

#include <gtest/gtest.h>

#include "fakes/fake_accelerator.h"

namespace hmc {
namespace {

TEST(StagingBuffer, isPinnedOnceForEachKindAndUnpinnedAtTheEnd) {
  FakeAccelerator cuda;
  FakeAccelerator hip(FakeOptions{DeviceKind::hip});
  {
    auto buffer = std::move(StagingBuffer::create(100000)).value();
    for (int i = 0; i < 2; ++i) buffer->pinFor(cuda);
    EXPECT_EQ(cuda.pinned(), 1u);
    buffer->pinFor(hip);
    EXPECT_EQ(hip.pinned(), 1u);
    EXPECT_GE(buffer->size(), 100000u);
    buffer->region(100000).at(99999)[0] = 'x';
  }
  EXPECT_EQ(cuda.pinned(), 0u);
  EXPECT_EQ(hip.pinned(), 0u);
}

TEST(StagingBuffer, servesWhereItCannotBePinned) {
  FakeAccelerator fake;
  fake.failNext(FakeAccelerator::Call::pin, Status(Code::exhausted, "no page may be locked"));
  auto buffer = std::move(StagingBuffer::create(4096)).value();
  buffer->pinFor(fake);
  EXPECT_EQ(fake.pinned(), 0u);
  buffer->region(4096).at(0)[0] = 'x';
}

TEST(BorrowedBuffer, isUsedAgain) {
  char* first = nullptr;
  {
    auto buffer = std::move(borrowBuffer()).value();
    first = buffer->region(1).at(0);
  }
  auto again = std::move(borrowBuffer()).value();
  EXPECT_EQ(again->region(1).at(0), first);
  auto other = std::move(borrowBuffer()).value();
  EXPECT_NE(other->region(1).at(0), first);
}

}  // namespace
}  // namespace hmc
