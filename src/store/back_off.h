#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "base/random.h"

namespace hmc::store {

// How long to wait before the next attempt. Doubles, and differs from client to client, so that a
// server that comes back is not met by all at once.
class BackOff {
 public:
  static constexpr std::chrono::milliseconds kFirst{10};
  static constexpr std::chrono::milliseconds kLongest{1000};

  std::chrono::milliseconds next() {
    const auto pause = pause_;
    pause_ = std::min(2 * pause_, kLongest);
    const auto half = static_cast<uint64_t>(pause.count()) / 2;
    return std::chrono::milliseconds(half + randomU64() % (half + 1));
  }

 private:
  std::chrono::milliseconds pause_ = kFirst;
};

}  // namespace hmc::store
