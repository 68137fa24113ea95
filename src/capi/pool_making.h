#pragma once

#include <cstdint>

#include "capi/big_memory.h"

namespace hmc::capi {

inline constexpr uint32_t kDefaultSeconds = 120;
inline constexpr uint16_t kNoRank = 65535;

// smem_bm_create() and its later form: a handle, or null. Sizes are rounded up.
void* makePool(uint32_t id, PoolSizes sizes);

int32_t rankTooHigh(uint32_t rank, uint32_t ranks);

}  // namespace hmc::capi
