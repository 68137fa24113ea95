#pragma once

#include <cstdint>
#include <span>

#include "hmc/block.h"

namespace hmc {

struct BlockSum {
  bool inside;     // every block lies inside both sides
  uint64_t bytes;  // of all blocks, if so
};

// Most of the time that a long list takes the processor is spent here.
BlockSum sumOf(std::span<const Block> blocks, uint64_t localSize, uint64_t remoteSize);

}  // namespace hmc
