#pragma once

namespace hmc {

/// The version of these headers; tests compare it with the build's.
constexpr const char* kVersion = "0.1.0";

}  // namespace hmc
