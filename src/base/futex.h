#pragma once

#include <atomic>
#include <cstdint>

#include "hmc/deadline.h"

namespace hmc {

// Sleeps while *word == expected, until woken or the deadline passes; may return early for no
// reason. The word may lie in memory shared with another process.
void futexWait(const std::atomic<uint32_t>& word, uint32_t expected, Deadline deadline);
void futexWakeAll(const std::atomic<uint32_t>& word);

}  // namespace hmc
