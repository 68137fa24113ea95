#pragma once

#include <map>
#include <memory>

#include "base/log.h"
#include "memory/backend.h"

namespace hmc {

// Keeps host memory pinned for the kinds of devices that it is used with. Destroyed or cleared
// before the memory goes. One thread at a time.
class DevicePins {
 public:
  // Once for each backend. Where it refuses, as in a process that may not lock so much memory,
  // copies are slower and right all the same.
  void pin(const Region& host, Backend& backend) {
    auto [entry, isNew] = pins_.try_emplace(&backend);
    if (!isNew) return;
    auto pinned = backend.pin(host);
    if (pinned.ok()) {
      entry->second = *std::move(pinned);
    } else {
      logDebug("staging {} bytes without pinning them: {}", host.size, pinned.status().message());
    }
  }
  void clear() { pins_.clear(); }

 private:
  std::map<Backend*, std::unique_ptr<PinnedMemory>> pins_;  // null: it refused
};

}  // namespace hmc
