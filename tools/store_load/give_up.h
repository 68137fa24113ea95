#pragma once

#include <cstdio>
#include <cstdlib>
#include <string>

namespace hmc::store {

// Nothing is worth measuring after an error.
[[noreturn]] inline void giveUp(const std::string& why) {
  std::fprintf(stderr, "store_load: %s\n", why.c_str());
  std::exit(1);
}

}  // namespace hmc::store
