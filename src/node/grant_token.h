#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "hmc/access.h"
#include "hmc/grant.h"
#include "hmc/result.h"
#include "memory/region.h"

namespace hmc {

// What a holder may do, all of it said anew by each who hands a grant on.
struct GrantLimit {
  uint64_t offset = 0;  // in the region
  uint64_t size = 0;
  Access access = Access::read;
  int64_t expires = 0;  // nanoseconds of Unix time; 0: never
  std::string holder;   // holderOf() the peer; empty: anybody

  std::string encode() const;
};

// The bytes of a Grant. The owner's MAC covers the head, each further one a limit with the MAC
// before it as its key, and only the last MAC is there: whoever has a grant can add a limit, and
// nobody can take one away or change it (decision 018).
struct GrantToken {
  static constexpr size_t kMostLimits = 17;
  static constexpr size_t kIdSize = 16;

  std::string owner;    // the Node's id
  uint64_t number = 0;  // ExportedMemory::number()
  std::string region;
  std::string id;                  // of what the owner granted, the same in all that was made of it
  std::vector<GrantLimit> limits;  // each within the one before; the last one counts
  std::string mac;

  std::string encode() const;
  static Result<GrantToken> decode(std::string_view bytes);

  const GrantLimit& allowed() const { return limits.back(); }

  // The first of a chain: the head is there, and the limits are for this to add.
  static Result<GrantToken> make(const std::string& key, GrantToken head, const GrantLimit& whole,
                                 const GrantOptions& options);
  Result<GrantToken> narrow(const GrantOptions& options) const;

  // For the owner: was it made with that key, and does each limit lie within the one before?
  Status verify(const std::string& key) const;
  // May that peer use it, now?
  Status checkUse(const std::string& peerId, int64_t now) const;
};

// Stands for a peer in a grant, so that who sees the bytes cannot say that he is that peer.
std::string holderOf(const std::string& peerId);

// Nanoseconds of Unix time.
int64_t wallClock();

}  // namespace hmc
