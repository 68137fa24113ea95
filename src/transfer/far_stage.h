#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "transport/transport.h"

namespace hmc {

// Where a transport cannot reach the target's memory: slots of host memory over there that it can
// reach, of StagePool::kSlotSize bytes each, and somebody who copies between them and the memory.
// How the two sides talk about it is not the engine's business. One engine alone takes the slots
// and gives them back, so that it knows whom to wake. Safe from any thread.
class FarStage {
 public:
  virtual ~FarStage() = default;

  // All slots, one after the other.
  virtual const RemoteMemory& slots() const = 0;
  // A slot for the caller alone until give(); none when all are in use.
  virtual std::optional<uint32_t> take() = 0;
  virtual void give(uint32_t slot) = 0;

  // Has the target copy blocks between a slot, where they lie one behind the other from its
  // beginning on (`localOffset`), and its memory (`remoteOffset`): into the memory for a put. They
  // are SlotBlocks::kMost at most. Does not block. `completion` ends as for an operation of a Link,
  // from any thread but with no lock of a transport held; then the bytes are there.
  virtual void copy(OpKind kind, uint32_t slot, std::span<const Block> blocks,
                    Completion& completion) = 0;
};

}  // namespace hmc
