#pragma once

#include <cstdint>
#include <string>

namespace hmc {

// Bytes that this process may still take without being refused or killed for it: what the machine
// has, and what its control groups (a container's limit) leave. 0 when nothing tells. Tests have
// another `root` than the machine's.
uint64_t availableMemory(const std::string& root = "");

}  // namespace hmc
