#pragma once

#include <map>
#include <memory>
#include <mutex>

#include "base/log.h"
#include "memory/backends.h"

namespace hmc {

// Keeps host memory pinned for the kinds of devices that it is used with. Destroyed or cleared
// before the memory goes. Safe from any thread.
class DevicePins {
 public:
  // Once for each backend. Where it refuses, as in a process that may not lock so much memory,
  // copies are slower and right all the same.
  void pin(const Region& host, Backend& backend) {
    std::lock_guard lock(mutex_);
    auto [entry, isNew] = pins_.try_emplace(&backend);
    if (!isNew) return;
    auto pinned = backend.pin(host);
    if (pinned.ok()) {
      entry->second = *std::move(pinned);
    } else {
      logDebug("{} bytes at {} stay unpinned for {}: {}", host.size, host.ptr, backend.facts().name,
               pinned.status().message());
    }
  }
  // For every kind of accelerator that this process uses already.
  void pinForLoaded(const Region& host) {
    for (DeviceKind kind : kDeviceKinds) {
      Backend* backend = kind == DeviceKind::cpu ? nullptr : loadedBackend(kind);
      if (backend) pin(host, *backend);
    }
  }
  void clear() {
    std::lock_guard lock(mutex_);
    pins_.clear();
  }

 private:
  std::mutex mutex_;
  std::map<Backend*, std::unique_ptr<PinnedMemory>> pins_;  // guarded by mutex_; null: it refused
};

}  // namespace hmc
