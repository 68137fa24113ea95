#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "hmc/block.h"

namespace hmc {

// Where a block of a list lies whose blocks are all of one size, as in cuda/copy_blocks.cu. A third
// of a Block, so the processor writes less and the device fetches less over the bus.
struct Place {
  uint32_t local;
  uint32_t remote;
};

// Such a list, where somebody wrote it down. Offsets are counted in units of 2^shift bytes.
struct EvenBlocks {
  const Place* places = nullptr;  // none: nobody did
  size_t each = 0;                // bytes of every block
  unsigned shift = 0;
};

// Checks that all blocks are of one size and lie inside both sides, and writes their places in the
// same pass, because reading a long list takes longer than anything that is done with it. `to` is
// aligned to 64 bytes. No places, and anything may be in `to`, where a block is of another size or
// outside, or an offset is no multiple of the unit that such large sides need.
// `atOnce` is how many blocks are handled together.
size_t mostPlacesAtOnce();  // on this processor: 8, 4 or 1
EvenBlocks writePlaces(std::span<const Block> blocks, uint64_t localSize, uint64_t remoteSize,
                       Place* to, size_t atOnce = mostPlacesAtOnce());

}  // namespace hmc
