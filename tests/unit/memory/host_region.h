#pragma once

#include <string>

#include "memory/region.h"

namespace hmc {

inline Region host(std::string& bytes) {
  return {bytes.data(), bytes.size(), Device{}};
}

}  // namespace hmc
