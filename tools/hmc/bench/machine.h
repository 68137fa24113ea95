#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace hmc::bench {

// What a reader of measurements needs to know of where they were taken: date, machine, kernel,
// build.
std::vector<std::pair<std::string, std::string>> describeMachine();

// How many cores this process may use.
size_t coresOfOurs();

}  // namespace hmc::bench
