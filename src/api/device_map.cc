#include "api/device_map.h"

#include "base/error.h"
#include "memory/backends.h"

namespace hmc {

// Both enumerations are made from HMC_DEVICE_KINDS; MemoryType has DEFAULT in front.
MemoryType memoryTypeOf(DeviceKind kind) {
  return static_cast<MemoryType>(static_cast<int>(kind) + 1);
}

MemoryType resolved(MemoryType type) {
  if (type != MemoryType::DEFAULT) return type;
  auto found = accelerators();
  return found.empty() ? MemoryType::CPU : memoryTypeOf(found.front()->facts().kind);
}

Result<Device> deviceFor(int deviceId, MemoryType type) {
  const int row = static_cast<int>(resolved(type)) - 1;
  if (row < 0 || row >= kDeviceKindCount) {
    return error(Code::invalidArgument, "there is no MemoryType {}", static_cast<int>(type));
  }
  const DeviceKind kind = kDeviceKinds[row];
  return Device{kind, kind == DeviceKind::cpu ? 0 : deviceId};
}

}  // namespace hmc
