#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "memory/device_pins.h"
#include "transport/transport.h"

namespace hmc {

// A piece of registered host memory that device bytes pass through where a transport cannot touch
// the device itself.
struct StageSlot {
  Region host;
  std::unique_ptr<Registration> registration;
  DevicePins pins;
  ~StageSlot();
};

// Keeps slots for reuse. Safe from any thread.
class StagePool {
 public:
  static constexpr size_t kSlotSize = size_t{1} << 20;

  explicit StagePool(Transport& transport) : transport_(transport) {}

  Result<std::unique_ptr<StageSlot>> take();
  void give(std::unique_ptr<StageSlot> slot);

 private:
  Transport& transport_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<StageSlot>> idle_;  // guarded by mutex_
};

}  // namespace hmc
