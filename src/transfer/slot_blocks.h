#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "transfer/pieces.h"

namespace hmc {

// Blocks of a transfer that pass through one slot, one behind the other and without gaps: a gap
// would carry what an earlier transfer left in the slot.
class SlotBlocks {
 public:
  // In one slot, and so in one request to the target: it looks at each of them on its control
  // thread.
  static constexpr size_t kMost = 4096;

  // In the place of what it held, as much of what comes next as a slot of that size takes. The last
  // block may go on in another slot.
  void take(Cursor& next, size_t slotSize);

  size_t bytes() const { return bytes_; }
  // From the slot's point of view: where its bytes belong in local memory (`remoteOffset` is the
  // offset in the slot), and where in the target's (`localOffset` is). Neighbours are one block.
  std::span<const Block> near() const { return near_; }
  std::span<const Block> far() const { return far_; }

 private:
  std::vector<Block> near_;
  std::vector<Block> far_;
  size_t bytes_ = 0;
};

}  // namespace hmc
