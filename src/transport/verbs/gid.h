#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "hmc/result.h"

// Which of a port's addresses to use, read from sysfs: old versions of libibverbs cannot tell the
// kinds apart.
namespace hmc::verbs {

using GidBytes = std::array<uint8_t, 16>;

struct Gid {
  enum class Kind { infiniband, roce1, roce2 };
  int index = 0;
  Kind kind = Kind::infiniband;
  GidBytes bytes{};

  bool isIpv4() const;  // ::ffff:a.b.c.d
  bool isLinkLocal() const;
  std::string toString() const;  // "10.8.0.1", "fe80::1"
};

const char* gidKindName(Gid::Kind kind);  // "RoCE v2"

// All that are set, in the order of the table. `sysfs` is /sys, or a test's.
std::vector<Gid> readGids(const std::string& sysfs, const std::string& device, int port);

// RoCE v2 with an IPv4 address before RoCE v2 with a global IPv6 one, before RoCE v2 with a
// link-local one, before RoCE v1; on InfiniBand the first. With `wanted` that index or an error.
Result<Gid> chooseGid(const std::vector<Gid>& gids, std::optional<int> wanted,
                      const std::string& port);

}  // namespace hmc::verbs
