#pragma once

#include <cstddef>

#include "hmc/collective.h"

namespace hmc::collective {

// to[i] = a[i] op b[i], for `size` bytes of numbers. `to` may be a or b. Vectorised for what this
// processor has.
using Combine = void (*)(void* to, const void* a, const void* b, size_t size);
Combine combineOf(DataType type, ReduceOp op);

// The same for the instructions that every processor has, which tests compare with.
Combine plainCombineOf(DataType type, ReduceOp op);

}  // namespace hmc::collective
