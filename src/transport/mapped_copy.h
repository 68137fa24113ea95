#pragma once

#include "memory/host_copy.h"
#include "transport/transport.h"

namespace hmc {

// A transfer with a peer's host memory that is mapped here: nothing but a copy.
struct MappedCopy {
  MappedCopy(OpKind kind, char* local, char* remote, size_t bytes)
      : dst(kind == OpKind::put ? remote : local),
        src(kind == OpKind::put ? local : remote),
        size(bytes) {}

  // Worth calling for the next copy before `running` runs. The processor finds neighbours by
  // itself, and asking it costs them a tenth.
  void prefetchDuring(const MappedCopy& running) const {
    const bool follows = src == running.src + running.size && dst == running.dst + running.size;
    if (!follows) prefetchCopy(dst, src, size);
  }
  void run() const { copyHost(dst, src, size); }

  char* dst;
  const char* src;
  size_t size;
};

}  // namespace hmc
