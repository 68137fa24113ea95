#include "api/device_map.h"

#include "base/error.h"
#include "node/facade.h"

namespace hmc {

namespace {

struct Row {
  MemoryType type;
  DeviceKind kind;
};
constexpr Row kRows[] = {
    {MemoryType::CPU, DeviceKind::cpu},
    {MemoryType::NVIDIA_GPU, DeviceKind::cuda},
    {MemoryType::AMD_GPU, DeviceKind::hip},
    {MemoryType::CAMBRICON_MLU, DeviceKind::cnrt},
    {MemoryType::HUAWEI_ASCEND_NPU, DeviceKind::acl},
    {MemoryType::MOORE_GPU, DeviceKind::musa},
};

}  // namespace

MemoryType memoryTypeOf(DeviceKind kind) {
  for (const Row& row : kRows) {
    if (row.kind == kind) return row.type;
  }
  return MemoryType::CPU;
}

MemoryType resolved(MemoryType type) {
  if (type != MemoryType::DEFAULT) return type;
  auto found = accelerators();
  return found.empty() ? MemoryType::CPU : memoryTypeOf(found.front()->facts().kind);
}

Result<Device> deviceFor(int deviceId, MemoryType type) {
  MemoryType wanted = resolved(type);
  for (const Row& row : kRows) {
    if (row.type == wanted) return Device{row.kind, row.kind == DeviceKind::cpu ? 0 : deviceId};
  }
  return error(Code::invalidArgument, "there is no MemoryType {}", static_cast<int>(type));
}

}  // namespace hmc
