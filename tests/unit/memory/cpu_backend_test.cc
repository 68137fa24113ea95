#include "memory/cpu/cpu_backend.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <cstring>
#include <string>
#include <thread>
#include <vector>

namespace hmc {
namespace {

// The contract that it shares with the other backends is in tests/contract/memory_contract.h.

constexpr size_t kPage = 4096;

TEST(CpuBackend, movesOverlappingMemoryInBothDirections) {
  CpuBackend backend;
  for (size_t size : {size_t{1000}, size_t{6} << 20}) {
    std::string bytes(size + 100, '\0');
    for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i % 241);
    std::string up = bytes;
    std::string down = bytes;
    EXPECT_TRUE(backend.copyAll({up.data() + 100, size, {}}, {up.data(), size, {}}, {}).ok());
    EXPECT_TRUE(backend.copyAll({down.data(), size, {}}, {down.data() + 100, size, {}}, {}).ok());
    EXPECT_TRUE(up.substr(100) == bytes.substr(0, size));
    EXPECT_TRUE(down.substr(0, size) == bytes.substr(100));
  }
}

TEST(CpuBackend, refusesOtherDevicesAndNullPointers) {
  CpuBackend backend;
  char byte = 0;
  const Region good{&byte, 1, {}};
  const Region null{nullptr, 1, {}};
  const Region onGpu{&byte, 1, {DeviceKind::cuda, 0}};
  EXPECT_EQ(backend.copyAll(onGpu, good, {}).code(), Code::invalidArgument);
  EXPECT_EQ(backend.copyAll(good, onGpu, {}).code(), Code::invalidArgument);
  EXPECT_EQ(backend.copyAll(good, null, {}).code(), Code::invalidArgument);
  EXPECT_EQ(backend.copyAll(null, good, {}).code(), Code::invalidArgument);
}

TEST(CpuBackend, saysThatOnlyItsOwnMemoryCanBeShared) {
  CpuBackend backend;
  std::string foreign(4096, 'x');
  auto shared = backend.share({foreign.data(), foreign.size(), Device{}}, ShareFor::process);
  ASSERT_FALSE(shared.ok());
  EXPECT_EQ(shared.status().code(), Code::unsupported);
}

TEST(CpuBackend, refusesSharesOfOtherDevicesOrWithoutADescriptor) {
  CpuBackend backend;
  Share share;
  share.size = 10;
  EXPECT_EQ(backend.attach(share, nullptr).status().code(), Code::invalidArgument);
  auto region = backend.allocate(0, 4096);
  auto other = backend.share(*region, ShareFor::process);
  other->kind = DeviceKind::cuda;
  EXPECT_EQ(backend.attach(*other, nullptr).status().code(), Code::invalidArgument);
}

TEST(CpuBackend, keepsAttachedMemoryAfterItsOwnerReleasedIt) {
  CpuBackend backend;
  auto region = backend.allocate(0, 5000);
  std::memset(region->ptr, 'q', 5000);
  auto attached = backend.attach(*backend.share(*region, ShareFor::process), nullptr);
  ASSERT_TRUE(attached.ok());
  EXPECT_TRUE(backend.release(region->ptr).ok());
  EXPECT_EQ(std::string(attached->at(0), 5000), std::string(5000, 'q'));
  EXPECT_TRUE(backend.detach(*attached).ok());
}

TEST(CpuBackend, attachesTheSameMemoryTwiceAtTwoAddresses) {
  CpuBackend backend;
  auto region = backend.allocate(0, 5000);
  auto share = backend.share(*region, ShareFor::process);
  auto first = backend.attach(*share, nullptr);
  auto second = backend.attach(*share, nullptr);
  EXPECT_NE(first->ptr, second->ptr);
  EXPECT_TRUE(backend.detach(*first).ok());
  *second->at(0) = 'k';
  EXPECT_EQ(*region->at(0), 'k');
  EXPECT_TRUE(backend.detach(*second).ok());
}

// A hole would be handed to the next mmap(2) of anybody.
TEST(CpuBackend, detachLeavesAReservationWithoutHoleAndPagesThatDoNoHarm) {
  CpuBackend backend;
  auto reservation = std::move(backend.reserve(size_t{8} << 20, nullptr)).value();
  auto region = backend.allocate(0, size_t{4} << 20);
  auto share = backend.share(*region, ShareFor::process);
  auto attached = backend.attach(*share, reservation->region.ptr);
  ASSERT_TRUE(attached.ok()) << attached.status().toString();
  *attached->at(0) = 'a';
  EXPECT_EQ(*region->at(0), 'a');
  EXPECT_TRUE(backend.detach(*attached).ok());
  std::vector<unsigned char> resident(reservation->region.size / kPage);
  EXPECT_EQ(mincore(reservation->region.ptr, reservation->region.size, resident.data()), 0)
      << "some of it is not mapped";
  // Who still has a pointer into it reads and writes pages of this process.
  EXPECT_EQ(*attached->at(0), 0);
  *attached->at(0) = 'b';
  EXPECT_EQ(*region->at(0), 'a');
}

// The kernel maps elsewhere what does not fit at a wish: here, right below what is in the way.
TEST(CpuBackend, namesWhatLiesWhereAReservationWasWished) {
  constexpr size_t kUnit = size_t{2} << 20;
  CpuBackend backend;
  auto room = std::move(backend.reserve(32 * kUnit, nullptr)).value();
  char* const first = room->region.at(0);
  room.reset();
  auto inTheWay = std::move(backend.reserve(kUnit, first + 24 * kUnit)).value();
  const Status taken = backend.reserve(16 * kUnit, first + 12 * kUnit).status();
  EXPECT_EQ(taken.code(), Code::alreadyExists);
  const std::string line = fmt::format("\"{:x}-", reinterpret_cast<uintptr_t>(first + 24 * kUnit));
  EXPECT_NE(taken.message().find(line), std::string::npos) << taken.message();
}

TEST(CpuBackend, givesTheAddressesOfAReservationBack) {
  CpuBackend backend;
  auto reservation = std::move(backend.reserve(size_t{8} << 20, nullptr)).value();
  void* first = reservation->region.ptr;
  reservation.reset();
  unsigned char resident = 0;
  EXPECT_NE(mincore(first, kPage, &resident), 0);
}

TEST(CpuBackend, servesManyThreadsAtOnce) {
  CpuBackend backend;
  std::vector<std::jthread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&backend] {
      for (int i = 0; i < 50; ++i) {
        auto region = backend.allocate(0, 10000);
        ASSERT_TRUE(region.ok());
        auto attached = backend.attach(*backend.share(*region, ShareFor::process), nullptr);
        ASSERT_TRUE(attached.ok());
        *attached->at(9999) = 'e';
        EXPECT_EQ(*region->at(9999), 'e');
        EXPECT_EQ(backend.locate(region->at(77))->ptr, region->ptr);
        EXPECT_TRUE(backend.detach(*attached).ok());
        EXPECT_TRUE(backend.release(region->ptr).ok());
      }
    });
  }
}

}  // namespace
}  // namespace hmc
