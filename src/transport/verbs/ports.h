#pragma once

#include <optional>
#include <string>
#include <vector>

#include "transport/verbs/address.h"
#include "transport/verbs/library.h"

namespace hmc::verbs {

// Which ports to use and how, as the user has set it.
struct PortSettings {
  std::vector<std::string> ports;  // "mlx5_0", "mlx5_1:2"; empty: all
  std::optional<int> gidIndex;
  std::optional<int> mtu;  // 256, 512, 1024, 2048 or 4096

  // HMC_RDMA_DEVICES, HMC_RDMA_GID_INDEX, HMC_RDMA_MTU.
  static Result<PortSettings> fromEnvironment();
};

// One port of one device.
struct Port {
  std::string device;
  int number = 1;
  bool usable = false;
  std::string problem;  // with a usable port too: "has link-local addresses only"
  std::string fix;
  bool soft = false;  // no hardware: soft-RoCE
  bool ethernet = false;
  double gbits = 0;
  ibv_mtu mtu = IBV_MTU_1024;
  uint16_t lid = 0;
  uint32_t largest = 0;  // bytes in one message
  Gid gid;

  std::string name() const;      // "mlx5_0:1"
  std::string kind() const;      // "RoCE v2", "soft-RoCE"
  std::string describe() const;  // "RoCE v2, GID 3 (10.0.0.1), MTU 4096, 100 Gb/s"
};

int mtuBytes(ibv_mtu mtu);

using DeviceList = std::unique_ptr<ibv_device*, void (*)(ibv_device**)>;
DeviceList listDevices(const Library& library);

Result<Handle<ibv_context>> openDevice(const Library& library, ibv_device* device);

// Every port of every device that libibverbs finds, best first: usable, then hardware, then rate.
// Ports that the settings leave out are not among them; a name in them that is not there is an
// error.
Result<std::vector<Port>> findPorts(const Library& library, const PortSettings& settings);

// Why findPorts() found none, with the fix, as far as the system shows.
Status explainNoDevice(const std::string& sysfs = "/sys", const std::string& dev = "/dev");

}  // namespace hmc::verbs
