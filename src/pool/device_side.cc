#include "pool/device_side.h"

#include <algorithm>
#include <cstddef>

#include "memory/backends.h"

namespace hmc::pool {

namespace {

// What smem_shm_device.h takes for granted.
static_assert(sizeof(ControlPage::Signal) == 64);
static_assert(offsetof(ControlPage::DeviceSync, signals) == 64);

// What a kernel reads of our own page, and what it writes into the others'.
constexpr size_t kOwnBytes = offsetof(ControlPage, shareSize);
constexpr size_t kOthersBytes = offsetof(ControlPage, context);

}  // namespace

Result<std::unique_ptr<DeviceSide>> DeviceSide::open(const Symmetric& object) {
  std::unique_ptr<DeviceSide> side(new DeviceSide(object));
  HMC_TRY(side->findReach());
  if (!object.options().device.isHost()) HMC_TRY(side->pinAll());
  return side;
}

DeviceSide::~DeviceSide() {
  pins_.clear();
  if (reach_.ptr) (void)hostBackend().release(reach_.ptr);
}

ControlPage::DeviceSync* DeviceSide::sync() const {
  return object_.onOneHost() ? &object_.controlPage(0).deviceSync : nullptr;
}

uint64_t DeviceSide::syncStride() const {
  return static_cast<uint64_t>(reinterpret_cast<char*>(&object_.controlPage(1)) -
                               reinterpret_cast<char*>(&object_.controlPage(0)));
}

Status DeviceSide::findReach() {
  const uint32_t ranks = options().ranks;
  std::vector<uint8_t> mapped(ranks);
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    const auto known = object_.mapped(rank);
    mapped[rank] = known.ok() && *known ? 1 : 0;
  }
  if (std::find(mapped.begin(), mapped.end(), 0) == mapped.end()) return Status();
  HMC_ASSIGN(reach_, hostBackend().allocate(0, ranks));
  std::copy(mapped.begin(), mapped.end(), reach_.at(0));
  return Status();
}

// One rank's part at a time: a driver registers what lies in one mapping.
Status DeviceSide::pinAll() {
  HMC_ASSIGN(Backend * backend, findBackend(options().device));
  auto pin = [&](const Region& host) -> Status {
    auto pinned = backend->pin(host);
    if (!pinned.ok()) {
      return pinned.status().within(
          fmt::format("kernels cannot reach the control pages of object {}", options().id));
    }
    pins_.push_back(*std::move(pinned));
    return Status();
  };
  for (uint32_t rank = 0; rank < options().ranks; ++rank) {
    if (rank != options().rank && !object_.onOneHost()) continue;
    HMC_TRY(pin(
        {&object_.controlPage(rank), rank == options().rank ? kOwnBytes : kOthersBytes, Device{}}));
  }
  return reach_.ptr ? pin(reach_) : Status();
}

}  // namespace hmc::pool
