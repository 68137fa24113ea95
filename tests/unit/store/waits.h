#pragma once

#include <chrono>

namespace hmc::store {

inline constexpr std::chrono::seconds kLong{60};        // for what comes
inline constexpr std::chrono::milliseconds kShort{50};  // for what does not

}  // namespace hmc::store
