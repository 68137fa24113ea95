#pragma once

namespace hmc {

// The version of these headers; tests hold it against the build's.
constexpr const char* kVersion = "0.1.0";

}  // namespace hmc
