#pragma once

// What every memory backend holds; memory_contract_*.cc say it, by subject. A backend joins with
// one file that defines memoryContractCases() and one line in CMakeLists.txt (hmc_memory_contract).

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "contract/second_process.h"
#include "fakes/pattern.h"
#include "memory/backend.h"
#include "memory/copy.h"

namespace hmc {

struct MemoryContractCase {
  std::string name;
  std::unique_ptr<Backend> (*make)();
  // The environment variable that picks the devices which a process sees, as "1,0"; empty: none.
  std::string visibleDevices;
  // A stream as a user of the vendor's runtime makes it; null: there are none.
  Result<DeviceQueue> (*makeStream)(Backend& backend, int index) = nullptr;

  friend void PrintTo(const MemoryContractCase& one, std::ostream* out) { *out << one.name; }
};

// Defined by the program that joins.
std::vector<MemoryContractCase> memoryContractCases();

inline std::string memoryContractName(const testing::TestParamInfo<MemoryContractCase>& info) {
  return info.param.name;
}

class MemoryContract : public testing::TestWithParam<MemoryContractCase> {
 protected:
  static constexpr std::chrono::seconds kPatience{60};

  void SetUp() override { ASSERT_NE(backend, nullptr) << "see above why it could not be made"; }
  Region allocate(size_t size, int index = 0) {
    auto made = backend->allocate(index, size);
    EXPECT_TRUE(made.ok()) << made.status().toString();
    return made.ok() ? *made : Region{};
  }
  // One that the backend is not of.
  DeviceKind otherKind() const {
    return backend->facts().kind == DeviceKind::musa ? DeviceKind::hip : DeviceKind::musa;
  }
  // What the process that started this one shares with it.
  Region attachInherited() {
    auto share = SecondProcess::inheritedShare();
    EXPECT_TRUE(share.ok()) << share.status().toString();
    auto region = share.ok() ? backend->attach(*share) : share.status();
    EXPECT_TRUE(region.ok()) << region.status().toString();
    return region.ok() ? *region : Region{};
  }
  int lastDevice() const { return backend->facts().deviceCount() - 1; }
  void release(const Region& region) { EXPECT_TRUE(backend->release(region.ptr).ok()); }

  static std::string pattern(size_t size, unsigned seed) { return test::pattern(size, seed); }
  static Region hostRegion(std::string& bytes) { return {bytes.data(), bytes.size(), Device{}}; }

  static DeviceQueue queueOf(const Region& dst, const Region& src) {
    return {dst.device.isHost() ? src.device : dst.device};
  }
  // Not waited for.
  Status enqueue(const Region& dst, const Region& src, const DeviceQueue& queue) {
    return backend->copyAll(dst, src, queue);
  }
  std::unique_ptr<DeviceEvent> makeEvent(int index) {
    auto made = backend->event(index);
    EXPECT_TRUE(made.ok()) << made.status().toString();
    return made.ok() ? *std::move(made) : nullptr;
  }
  std::unique_ptr<DeviceEvent> recorded(const DeviceQueue& queue) {
    auto event = makeEvent(queue.device.index);
    Status status = event->record(queue);
    EXPECT_TRUE(status.ok()) << status.toString();
    return event;
  }
  // Everything that was enqueued there before has run when this returns.
  void drain(const DeviceQueue& queue) {
    Status status = waitFor(*recorded(queue), kPatience);
    EXPECT_TRUE(status.ok()) << status.toString();
  }
  Status copyNow(const Region& dst, const Region& src) {
    const DeviceQueue queue = queueOf(dst, src);
    HMC_TRY(enqueue(dst, src, queue));
    drain(queue);
    return Status();
  }

  void write(const Region& dst, std::string bytes) {
    Status status = copyNow(dst, hostRegion(bytes));
    EXPECT_TRUE(status.ok()) << status.toString();
  }
  std::string read(const Region& src) {
    std::string bytes(src.size, '?');
    Status status = copyNow(hostRegion(bytes), src);
    EXPECT_TRUE(status.ok()) << status.toString();
    return bytes;
  }

  const std::unique_ptr<Backend> backend = GetParam().make();
};

}  // namespace hmc
