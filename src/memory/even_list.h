#pragma once

#include "memory/places.h"
#include "memory/staging_buffer.h"

namespace hmc {

// A list of blocks of one size, written down where devices read it. Whoever starts a copy of it
// keeps the memory until the copy has ended.
struct EvenList {
  BorrowedBuffer memory;  // none where the list is not of that kind
  EvenBlocks blocks;      // in `memory`
};

}  // namespace hmc
