#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "transfer/stage.h"
#include "transport/transport.h"

namespace hmc {

// What peers ask of each other about staging (Channel::call).
inline constexpr uint16_t kOpenStage = 5;
inline constexpr uint16_t kCopySlot = 6;

// Host memory for one peer and one transport: the peer moves bytes in and out of its slots where
// the transport cannot reach the memory that they are meant for, and asks us to copy the rest of
// the way. The other side is node/far_slots.h.
struct StageHost {
  static constexpr uint32_t kSlots = 8;
  static Result<std::shared_ptr<StageHost>> create(Transport& transport);
  ~StageHost();

  Region slot(uint32_t index, size_t size) const {
    return host.slice(index * StagePool::kSlotSize, size);
  }

  Region host;
  std::unique_ptr<Registration> registration;
  DevicePins pins;
};

// The answer to kOpenStage.
struct StageOffer {
  std::string key;
  uint32_t slots = 0;

  std::string encode() const;
  static Result<StageOffer> decode(std::string_view bytes);
};

// The request of kCopySlot: `size` bytes from the beginning of a slot to `offset` of the region for
// a put, back for a get.
struct SlotCopy {
  OpKind kind = OpKind::put;
  std::string transport;
  uint32_t slot = 0;
  std::string region;
  uint64_t number = 0;  // LocalMemory::number(): the name may stand for another memory by now
  uint64_t offset = 0;
  uint64_t size = 0;

  std::string encode() const;
  static Result<SlotCopy> decode(std::string_view bytes);
};

}  // namespace hmc
