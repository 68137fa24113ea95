#pragma once

#include "hmc/status.h"
#include "memory/region.h"

namespace hmc {

// Copies src into the start of dst, whatever the two devices are: within one kind, to or from the
// host, or between two vendors through a pinned host buffer. Finished when it returns. dst.size
// must be at least src.size. Overlap is allowed on the host only.
Status copy(const Region& dst, const Region& src);

// As copy(), but the two may overlap on any device, as memmove(3) allows.
Status move(const Region& dst, const Region& src);

// Host to host. Small copies stay in the cache; from kStreamingThreshold on, the destination is
// written with non-temporal stores where the processor has them. No overlap.
void copyHost(void* dst, const void* src, size_t size);

// The same with non-temporal stores from some KiB on: for a piece of something large.
void streamHost(void* dst, const void* src, size_t size);

inline constexpr size_t kStreamingThreshold = size_t{4} << 20;

}  // namespace hmc
