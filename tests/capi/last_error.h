#pragma once

#include <smem.h>

#include <string>

namespace hmc::test {

inline std::string said() {
  return smem_get_last_err_msg();
}

}  // namespace hmc::test
