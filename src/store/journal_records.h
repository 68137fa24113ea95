#pragma once

#include <string>
#include <string_view>

#include "hmc/result.h"
#include "store/state.h"

namespace hmc::store {

// The bytes of a journal: kJournalHeader, then records. A record is its length, the length's
// complement, a checksum (u32, u32, u64) and a change.

inline constexpr std::string_view kJournalHeader = "hmc-store-journal 1\n";

std::string recordOfSet(std::string_view key, std::string_view value, uint64_t lease);
std::string recordOfRemoved(std::string_view key);
std::string recordOfGranted(uint64_t lease, std::chrono::milliseconds ttl);
std::string recordOfEnded(uint64_t lease);

// Carries the records out and answers how many bytes are whole: fewer than there are when the last
// record is incomplete. Damage before that is an error with its place.
Result<size_t> replay(std::string_view bytes, State& state, State::Time now);

}  // namespace hmc::store
