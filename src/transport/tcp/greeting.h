#pragma once

#include <cstdint>
#include <string>

#include "base/proof.h"

namespace hmc::tcp {

inline constexpr size_t kTokenSize = 16;

enum class Role : uint32_t {
  forward = 1,  // the side that dialled asks
  reverse = 2,  // the side that was dialled asks
};

// The first bytes of a stream: which link it belongs to, and proof that the dialling side knows the
// link's credentials. Each stream of a link has a number, so that a proof that was overheard does
// not open another one.
struct Greeting {
  static constexpr size_t kProven = 12 + kTokenSize;
  static constexpr size_t kSize = kProven + kProofSize;

  uint32_t role = 0;
  uint32_t stream = 0;
  std::string token;

  std::string pack(const std::string& credentials) const;
  // What kSize bytes say, whoever sent them; no role when they are no greeting.
  static Greeting unpack(const char* bytes);
  // Whether whoever packed these kSize bytes knew the credentials.
  static bool isProven(const char* bytes, const std::string& credentials);
};

}  // namespace hmc::tcp
