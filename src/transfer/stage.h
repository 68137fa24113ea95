#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "memory/staging_buffer.h"
#include "transport/transport.h"

namespace hmc {

// A piece of registered host memory that device bytes pass through where a transport cannot touch
// the device itself. Pinned for the devices that it is used with.
struct StageSlot {
  std::unique_ptr<StagingBuffer> host;
  std::unique_ptr<Registration> registration;  // goes first
};

// Keeps slots for reuse. Safe from any thread.
class StagePool {
 public:
  static constexpr size_t kSlotSize = size_t{1} << 20;

  explicit StagePool(Transport& transport) : transport_(transport) {}

  // For copies between the slot and memory of that device.
  Result<std::unique_ptr<StageSlot>> take(const Device& device);
  void give(std::unique_ptr<StageSlot> slot);

 private:
  Transport& transport_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<StageSlot>> idle_;  // guarded by mutex_
};

}  // namespace hmc
