#pragma once

#include <string>
#include <vector>

#include "doctor/finding.h"
#include "hmc/info.h"

// What RDMA lacks on this host. RDMA is optional, so nothing here is a failure: without a device
// there is one line, and with a device every problem is a warning with its fix.
namespace hmc::tool {

// The file through which one RDMA device is used, and whether it could be opened.
struct DeviceFile {
  std::string device;  // "mlx5_0"
  std::string path;    // "/dev/infiniband/uverbs0"
  int error = 0;       // errno
};
std::vector<DeviceFile> tryDeviceFiles(const std::string& root);

bool hasRdmaDevice(const std::string& root);

std::vector<Finding> checkRdma(const std::string& root, const std::vector<DeviceFile>& files,
                               const RdmaReport& report);

}  // namespace hmc::tool
