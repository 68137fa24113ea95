#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hmc/result.h"

namespace hmc::verbs {

// One of a port's addresses. They are read from sysfs: old versions of libibverbs cannot tell the
// kinds apart.
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

// A port, as a peer needs to know it.
struct PortAddress {
  GidBytes gid{};
  uint16_t lid = 0;
  uint8_t mtu = 0;        // an ibv_mtu
  uint8_t readDepth = 0;  // gets that it serves at a time, per queue pair
  bool ethernet = false;
};

struct QpAddress {
  uint8_t port = 0;  // index into Address::ports
  uint32_t number = 0;
  uint32_t psn = 0;  // of the first packet that it sends
};

// What one side of a link tells the other: where its queue pairs are.
struct Address {
  std::vector<PortAddress> ports;
  QpAddress control;
  std::vector<QpAddress> outgoing;  // that send our operations
  std::vector<QpAddress> incoming;  // that serve the peer's

  std::string encode() const;
  static Result<Address> decode(std::string_view bytes);
};

}  // namespace hmc::verbs
