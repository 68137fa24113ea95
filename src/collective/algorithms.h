#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "collective/operation.h"
#include "collective/reduce.h"

// What each rank does in an operation. All of them send pieces while there is room for them, and
// take those of others as they arrive.
namespace hmc::collective {

Status meet(Operation& operation);

Status spread(Operation& operation, char* data, size_t size, uint32_t root);

Status exchange(Operation& operation, const std::vector<ExchangePart>& parts);

// Everybody sends everything to everybody: one step, and the least of all work for two ranks.
Status reduceEverywhere(Operation& operation, char* data, size_t size, Combine combine);

// Rank r reduces everybody's parts[r], of bounds[r + 1] - bounds[r] bytes, into `reduced`, which
// may be its own. With `gathered`, everybody gets the results of all, each at its bound: then the
// parts and `reduced` are there.
Status reduceParts(Operation& operation, const std::vector<const char*>& parts, char* reduced,
                   const std::vector<size_t>& bounds, Combine combine, char* gathered);

}  // namespace hmc::collective
