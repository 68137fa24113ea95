#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "base/random.h"
#include "hmc/grant.h"

namespace hmc {

class PeerState;

// What Peer::open() is asked for: a region's name, or a grant for a part of one.
struct WantedRegion {
  WantedRegion(std::string region)  // NOLINT(google-explicit-constructor)
      : name(std::move(region)) {}
  WantedRegion(const char* region) : name(region) {}  // NOLINT(google-explicit-constructor)
  WantedRegion(const Grant& by)                       // NOLINT(google-explicit-constructor)
      : name(by.name()), grant(by.bytes()) {}

  std::string name;   // for sentences, too
  std::string grant;  // its bytes; empty: by name
};

// What a peer has opened for us by a grant, until this is destroyed.
struct GrantedOpening {
  GrantedOpening(std::shared_ptr<PeerState> of, std::string by)
      : peer(std::move(of)), grant(std::move(by)), number(randomU64()) {}
  ~GrantedOpening();
  GrantedOpening(const GrantedOpening&) = delete;
  GrantedOpening& operator=(const GrantedOpening&) = delete;

  const std::shared_ptr<PeerState> peer;
  const std::string grant;  // its bytes
  const uint64_t number;    // by which the peer knows this opening
};

}  // namespace hmc
