#pragma once

// What `hmc bench` measured on this host, kept in a small text file. A Node reads it when it is
// made, to choose paths by it and for Peer::explain(). Needs C++17.

#include <cstddef>
#include <string>
#include <vector>

#include "hmc/device.h"
#include "hmc/export.h"
#include "hmc/status.h"

namespace hmc {

struct MeasuredFigure {
  // "tcp", or with the way that it took, "ipc/process_vm" (RemoteRegion::path()); a bare name
  // stands for its fastest way. One word.
  std::string transport;
  DeviceKind kind = DeviceKind::cpu;  // of the local memory
  std::string operation;              // "put", "get"; one word
  size_t size = 0;                    // bytes of one blocking operation
  double nanoseconds = 0;             // that it took, the median
  bool away = false;                  // the peer was on another host
};

// $HMC_FIGURES, else $XDG_CACHE_HOME/hmc/figures, else ~/.cache/hmc/figures; empty when none of
// these variables is set.
HMC_API std::string figuresPath();

// Adds to what is there; a figure for the same transport, kind, operation and size is replaced. The
// file is never seen half written.
HMC_API Status saveFigures(const std::vector<MeasuredFigure>& figures);

// What is there: nothing when nobody has measured yet. Lines that make no sense are left out.
HMC_API std::vector<MeasuredFigure> loadFigures();

}  // namespace hmc
