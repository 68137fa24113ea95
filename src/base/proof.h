#pragma once

#include <string>
#include <string_view>

namespace hmc {

inline constexpr size_t kProofSize = 32;

// HMAC-SHA256 of `text` under the secret: proves that one knows the secret without telling it.
// Empty, which proves nothing, when this process is ending.
std::string proof(const std::string& secret, std::string_view text);

// Compares in a time that does not depend on where the two differ.
bool sameProof(std::string_view a, std::string_view b);

}  // namespace hmc
