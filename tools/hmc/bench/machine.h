#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace hmc::bench {

// Where measurements were taken: date, machine, kernel, build.
std::vector<std::pair<std::string, std::string>> describeMachine();

// How many cores this process may use.
size_t usableCores();

}  // namespace hmc::bench
