#pragma once

#include "hmc/export.h"
#include "memory/backend.h"

// What a library named in HMC_MEMORY_PLUGIN exports: the backend that it provides, which lives as
// long as the process, or null when it was built for another version of HMC than `hmcVersion` or
// its runtime is missing. C++ objects cross this call, so "another version" is any other version.
extern "C" HMC_API hmc::Backend* hmcMemoryBackend(const char* hmcVersion);
