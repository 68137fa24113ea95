#pragma once

// Times that `hmc bench --save FILE` measured, kept in a small text file. Nodes choose their paths
// by them only where HMC_MEASUREMENTS names the file.

#include "hmc/cpp17.h"

#include <cstddef>
#include <string>
#include <vector>

#include "hmc/device.h"
#include "hmc/export.h"
#include "hmc/status.h"

namespace hmc {

/// What one operation of one size took.
struct Measurement {
  /// "tcp", or with the path that it took, "ipc/process_vm" (RemoteRegion::path()); a bare name
  /// stands for the transport's fastest path. One word.
  std::string transport;
  DeviceKind kind = DeviceKind::cpu;  ///< of the local memory
  std::string operation;              ///< "put", "get"; one word
  size_t size = 0;                    ///< bytes of one blocking operation
  double nanoseconds = 0;             ///< the median time of one operation
  bool away = false;                  ///< the peer was on another host
};

/// Adds to what the file holds, and replaces times of the same transport, kind, operation, size and
/// host. Makes the file where there is none; refuses one that holds something else. Readers never
/// see half of it.
HMC_API Status saveMeasurements(const std::string& file,
                                const std::vector<Measurement>& measurements);

}  // namespace hmc
