#pragma once

#include <map>
#include <memory>

#include "memory/backend.h"

namespace hmc {

// Keeps host memory pinned for the kinds of devices that it is used with. Destroyed or cleared
// before the memory goes. One thread at a time.
class DevicePins {
 public:
  // Once for each backend. Where it refuses, as in a process that may not lock so much memory,
  // copies are slower and right all the same.
  void pin(const Region& host, Backend& backend);
  // For every accelerator that this process uses so far.
  void pinForAll(const Region& host);
  void clear() { pins_.clear(); }

 private:
  std::map<Backend*, std::unique_ptr<PinnedMemory>> pins_;  // null: it refused
};

}  // namespace hmc
