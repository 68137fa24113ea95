#pragma once

// What this build of the library has and what it finds in this process, for `hmc info` and for bug
// reports.

#include "hmc/cpp17.h"

#include <string>
#include <vector>

#include "hmc/device.h"
#include "hmc/export.h"

namespace hmc {

/// How this library was built.
struct BuildReport {
  std::string version;
  std::string compiler;
  std::string type;     ///< "Release", "Debug", ...
  std::string library;  ///< the file that this code was loaded from
};
HMC_API BuildReport buildReport();

/// One kind of memory.
struct MemoryReport {
  DeviceKind kind = DeviceKind::cpu;
  int devices = 0;
  std::string detail;  ///< what provides it, or why there is none
};
/// Every kind, the host's first. Loads the runtimes that it can find.
HMC_API std::vector<MemoryReport> memoryReport();

/// One environment variable that the library reads.
struct SettingReport {
  std::string variable;
  std::string meaning;
  std::string value;             ///< as it is now; never a secret
  bool fromEnvironment = false;  ///< else the default
  std::string problem;           ///< why the value is invalid, if it is
  std::string readBy;            ///< whose options have it as their default: "Pool"
};
HMC_API std::vector<SettingReport> settingsReport();

/// Who is let in by a Node of this process that names no secret itself.
struct SecurityReport {
  std::string host;     ///< over loopback
  std::string network;  ///< where other hosts reach it
  bool open = false;    ///< one of the two lets everybody in
  std::string problem;  ///< why there can be no Node
};
HMC_API SecurityReport securityReport();

/// Whether owners can take back what a peer of this host has mapped while that peer is stopped, or
/// why not: docs/decisions/015-taking-mapped-memory-back.md.
HMC_API Status mappedMemoryReport();

/// What the library sees of RDMA on this host. An empty `problem` means that nothing is wrong
/// there; a `fix` is a command or a sentence that helps.
struct RdmaPort {
  std::string device;  ///< "mlx5_0"
  int port = 1;
  bool usable = false;
  std::string detail;  ///< "active, RoCE v2 10.0.0.1 at GID index 3, MTU 4096"
  std::string problem;
  std::string fix;
};
/// How the NICs reach the memory of one device.
struct RdmaMemory {
  Device device;
  std::string how;  ///< "dma-buf", "peer memory", "staged: why"
};
/// All of it.
struct RdmaReport {
  std::string library;  ///< the file of libibverbs that was loaded; empty if there is none
  std::string problem;
  std::string fix;
  std::vector<RdmaPort> ports;
  std::vector<RdmaMemory> memory;
};
/// Loads libibverbs if it is installed, and examines every port of every device.
HMC_API RdmaReport rdmaReport();

}  // namespace hmc
