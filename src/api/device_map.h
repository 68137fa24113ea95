#pragma once

#include "hmc/device.h"
#include "hmc/memory.h"
#include "hmc/result.h"

namespace hmc {

// What MemoryType::DEFAULT stands for on this machine; any other type is itself. An accelerator
// means one with a device: asking may load vendors' runtimes.
MemoryType resolved(MemoryType type);

// The device behind the pair that the documented classes use. The number of CPU memory is ignored.
// invalidArgument when the value is none of MemoryType.
Result<Device> deviceFor(int deviceId, MemoryType type);

MemoryType memoryTypeOf(DeviceKind kind);

}  // namespace hmc
