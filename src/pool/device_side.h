#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "hmc/result.h"
#include "memory/backend.h"
#include "pool/control_page.h"
#include "pool/symmetric.h"

namespace hmc::pool {

// Lets kernels of this process reach what they need of a symmetric object beside its slots: the
// context, the words of barriers, and which slots are mapped. All of that is host memory, so that
// ranks of different devices share it; for an accelerator it is registered with the driver.
// Constant.
class DeviceSide {
 public:
  // The object outlives it.
  static Result<std::unique_ptr<DeviceSide>> open(const Symmetric& object);
  DeviceSide(const DeviceSide&) = delete;
  DeviceSide& operator=(const DeviceSide&) = delete;
  ~DeviceSide();

  const SymmetricOptions& options() const { return object_.options(); }
  char* base() const { return object_.base(); }
  ControlPage& page() const { return object_.controlPage(options().rank); }
  // Rank 0's words; null unless all ranks have mapped each other's.
  ControlPage::DeviceSync* sync() const;
  // From one rank's to the next one's.
  uint64_t syncStride() const;
  // By rank, 0 where its slot is not mapped; null when all are.
  const uint8_t* reach() const { return static_cast<const uint8_t*>(reach_.ptr); }

 private:
  explicit DeviceSide(const Symmetric& object) : object_(object) {}
  Status findReach();
  Status pinAll();

  const Symmetric& object_;
  Region reach_;
  std::vector<std::unique_ptr<PinnedMemory>> pins_;
};

}  // namespace hmc::pool
