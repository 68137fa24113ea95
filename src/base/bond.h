#pragma once

#include <string>
#include <string_view>

namespace hmc {

// What the two ends of one conversation know and nobody else does, and which end this is. Two ends
// sign differently, so that nobody can give us our own words back as the other end's.
struct Bond {
  std::string secret;  // never travels
  bool initiator = false;

  std::string sign(std::string_view text) const;
  // Did the other end sign this?
  bool signedByPeer(std::string_view text, std::string_view signature) const;
};

}  // namespace hmc
