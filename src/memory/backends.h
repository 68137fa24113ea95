#pragma once

#include <vector>

#include "memory/backend.h"

namespace hmc {

// The backends of this process. They are process-wide because vendors' runtimes are: each is loaded
// at most once, when it is first asked for, and stays. HMC_MEMORY_PLUGIN can name a shared library
// that provides one more (see docs/adding-a-backend.md).

Backend& hostBackend();

// The backend of a kind, or why this machine has none: which library or driver was missing.
Result<Backend*> findBackend(DeviceKind kind);

// The backend and device index check in one: an index outside the backend's devices is an error
// that says how many there are.
Result<Backend*> findBackend(const Device& device);

// Every kind that has at least one device on this machine, the host left out. Loads all vendors'
// runtimes that it can find, so call it only for who asks for an accelerator.
std::vector<Backend*> accelerators();

// Which device a pointer of unknown origin lives on; host when no loaded accelerator claims it.
Device deviceOf(const void* ptr);

}  // namespace hmc
