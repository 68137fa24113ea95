#pragma once

#include <string>
#include <vector>

#include "hmc/device.h"

// What there is of RDMA on this host, for people.
namespace hmc::verbs {

struct PortReport {
  std::string device;
  int port = 1;
  bool usable = false;
  std::string detail;
  std::string problem;
  std::string fix;
};

struct MemoryWay {
  Device device;
  std::string how;  // "dma-buf", "peer memory", "staged through the host: why"
};

struct Report {
  std::string library;  // the file that was loaded; empty when there is none
  std::string problem;
  std::string fix;
  std::vector<PortReport> ports;
  std::vector<MemoryWay> memory;  // of the devices with memory of their own, when a port is usable
};

Report report();

}  // namespace hmc::verbs
