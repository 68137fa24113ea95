#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "hmc/access.h"
#include "hmc/device.h"

namespace hmc {

/// What the bytes of a region are, as their owner says it; HMC itself does not look at it.
struct ArrayType {
  std::string dtype;            ///< numpy's name, "float32"; empty for plain bytes
  std::vector<uint64_t> shape;  ///< of at most 64 dimensions
};

/// A region of a peer's: Peer::regions().
struct RegionInfo {
  std::string name;
  size_t size = 0;
  Device device;
  Access access = Access::read;
  ArrayType type;
};

}  // namespace hmc
