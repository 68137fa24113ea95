#pragma once

#include <cstdint>
#include <string>

namespace hmc {

// Bytes from the kernel's generator, fit for secrets.
std::string randomBytes(size_t count);
uint64_t randomU64();
std::string hex(const std::string& bytes);

}  // namespace hmc
