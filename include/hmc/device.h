#pragma once

#include <cstdint>
#include <string>

#include "hmc/export.h"

namespace hmc {

// Peers exchange the names, not the values: see deviceKindName().
enum class DeviceKind : uint8_t { cpu, cuda, hip, cnrt, acl, musa };

HMC_API const char* deviceKindName(DeviceKind kind);

struct Device {
  DeviceKind kind = DeviceKind::cpu;
  int index = 0;

  bool isHost() const { return kind == DeviceKind::cpu; }
  // "cpu" or "cuda:1"
  HMC_API std::string toString() const;
  friend bool operator==(const Device& a, const Device& b) {
    return a.kind == b.kind && a.index == b.index;
  }
  friend bool operator!=(const Device& a, const Device& b) { return !(a == b); }
};

}  // namespace hmc
