#include "hmc/device.h"

namespace hmc {

const char* deviceKindName(DeviceKind kind) {
  switch (kind) {
    case DeviceKind::cpu:
      return "cpu";
    case DeviceKind::cuda:
      return "cuda";
    case DeviceKind::hip:
      return "hip";
    case DeviceKind::cnrt:
      return "cnrt";
    case DeviceKind::acl:
      return "acl";
    case DeviceKind::musa:
      return "musa";
  }
  return "unknown";
}

std::string Device::toString() const {
  return isHost() ? "cpu" : std::string(deviceKindName(kind)) + ":" + std::to_string(index);
}

}  // namespace hmc
