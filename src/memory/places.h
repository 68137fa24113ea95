#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "hmc/block.h"

namespace hmc {

// Where a block of a list lies whose blocks are all of one size, as in cuda/copy_blocks.cu. A third
// or a sixth of a Block, so the processor writes less and the device fetches less over the bus.
struct Place {
  uint32_t local;
  uint32_t remote;
};
struct NarrowPlace {
  uint16_t local;
  uint16_t remote;
};

// Such a list, where somebody wrote it down. Offsets are counted in units of 2^shift bytes.
struct EvenBlocks {
  const void* places = nullptr;  // none: nobody did
  size_t each = 0;               // bytes of every block
  unsigned shift = 0;
  bool narrow = false;  // NarrowPlaces, else Places

  size_t placeSize() const { return narrow ? sizeof(NarrowPlace) : sizeof(Place); }
};

// Checks that all blocks are of one size and lie inside both sides, and writes their places in the
// same pass, because reading a long list takes longer than anything that is done with it. `to` is
// aligned to 32 bytes and has room for Places. They are narrow where all offsets are multiples of
// the largest power of two that divides the size, and few enough of them fit into the sides. No
// places, and anything may be in `to`, where a block is of another size or outside, or an offset is
// no multiple of the unit that such large sides need.
EvenBlocks writePlaces(std::span<const Block> blocks, uint64_t localSize, uint64_t remoteSize,
                       void* to);

}  // namespace hmc
