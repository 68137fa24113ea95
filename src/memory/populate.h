#pragma once

#include "hmc/access.h"
#include "memory/region.h"

namespace hmc {

// Has the kernel provide the pages of host memory now, because the first touch of each would
// otherwise cost a transfer microseconds. Only a hint: nothing fails by it, and large regions, and
// those that would eat much of the memory that is available, are left alone.
void populate(const Region& region, Access access);

// Whether populate() would do anything for so many bytes. Whoever populates in pieces asks for all
// of them together first.
bool worthPopulating(size_t size);

}  // namespace hmc
