#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace hmc::tool {

// Two processes exchange bytes over every transport that works here, and a table says how it went.
// The exit status: 0 when at least one transport worked and none failed.
int runDemo(size_t bytes);

// The other process: serves one peer over one transport until its standard input closes.
int serveDemo(const std::string& transport, size_t bytes);

// What the two agree on.
inline constexpr const char* kDemoRegion = "demo";
inline constexpr char kCheckRequest[] = "check";
void fillPattern(void* data, size_t bytes, uint64_t seed);
uint64_t checksum(const void* data, size_t bytes);

}  // namespace hmc::tool
