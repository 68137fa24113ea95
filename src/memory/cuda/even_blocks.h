#pragma once

#include <cstdint>
#include <optional>

#include "memory/backend.h"

namespace hmc::cuda {

// Where a block of a list lies whose blocks are all of one size, as in copy_blocks.cu. A third of a
// Block, so the processor writes less and the device fetches less over the bus.
struct Place {
  uint32_t local;
  uint32_t remote;
};

// Writes the places of the batch's blocks, counted in units of 2^shift bytes, and answers the
// shift. None, and anything may be in `to`, where sizes differ or are unknown, or an offset is no
// multiple of the unit that such large memory needs.
std::optional<unsigned> writePlaces(const CopyBatch& batch, Place* to);

}  // namespace hmc::cuda
