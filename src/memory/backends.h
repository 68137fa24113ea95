#pragma once

#include <vector>

#include "memory/backend.h"

namespace hmc {

// The backends of this process. They are process-wide because vendors' runtimes are: each is loaded
// at most once, when it is first asked for, and stays. A folder of src/memory provides one, and
// HMC_MEMORY_PLUGIN can name a shared library with one more (see docs/adding-a-backend.md).

Backend& hostBackend();
// hostBackend()'s memory in a memory file of the caller's: what a process wrote into the file
// before is there. To be released like any other.
Result<Region> adoptHostMemory(int fd, size_t size);

// The backend of a kind, or why this machine has none: which library or driver was missing.
Result<Backend*> findBackend(DeviceKind kind);

// The backend and device index check in one: an index outside the backend's devices is an error
// that says how many there are.
Result<Backend*> findBackend(const Device& device);

// The backend of a kind if it has been loaded already.
Backend* loadedBackend(DeviceKind kind);

// Loads what HMC_MEMORY_PLUGIN names, unless that was done before.
void loadPlugins();

// Every kind that has at least one device on this machine, the host left out. Loads all vendors'
// runtimes that it can find, so call it only for callers that want an accelerator.
std::vector<Backend*> accelerators();

}  // namespace hmc
