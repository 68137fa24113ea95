#pragma once

#include <cstdint>

namespace hmc {

/// What peers may do with registered memory.
enum class Access : uint8_t { read, readWrite };

}  // namespace hmc
