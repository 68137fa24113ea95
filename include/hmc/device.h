#pragma once

#include "hmc/cpp14.h"

#include <cstdint>
#include <string>

#include "hmc/export.h"
#include "hmc/status.h"

// Every kind of memory that this version knows, one row each: its name here, the product, its name
// in MemoryType, and how the file name of a library begins that is loaded in every process that has
// such memory. All code that deals with kinds is made from these rows; a new kind goes to the end.
// clang-format off
#define HMC_DEVICE_KINDS(row) \
  row(cpu, "host memory", CPU, "") \
  row(cuda, "CUDA", NVIDIA_GPU, "libcuda.so") \
  row(hip, "ROCm", AMD_GPU, "libhsa-runtime64.so") \
  row(cnrt, "Neuware", CAMBRICON_MLU, "libcnrt.so") \
  row(acl, "Ascend", HUAWEI_ASCEND_NPU, "libascendcl.so") \
  row(musa, "MUSA", MOORE_GPU, "libmusa.so")
// clang-format on

namespace hmc {

/// Peers exchange the names, not the values: see deviceKindName().
enum class DeviceKind : uint8_t {
#define HMC_ROW(kind, product, type, library) kind,
  HMC_DEVICE_KINDS(HMC_ROW)
#undef HMC_ROW
};

/// All of them, in order: kDeviceKinds[i] has the value i.
constexpr DeviceKind kDeviceKinds[] = {
#define HMC_ROW(kind, product, type, library) DeviceKind::kind,
    HMC_DEVICE_KINDS(HMC_ROW)
#undef HMC_ROW
};
constexpr int kDeviceKindCount = static_cast<int>(sizeof(kDeviceKinds) / sizeof(kDeviceKinds[0]));

/// "cuda"
HMC_API const char* deviceKindName(DeviceKind kind);
/// The kind of that name, in kDeviceKinds; null when there is none.
HMC_API const DeviceKind* findDeviceKind(const std::string& name);

/// One device of a kind.
struct Device {
  DeviceKind kind = DeviceKind::cpu;
  int index = 0;

  bool isHost() const { return kind == DeviceKind::cpu; }  ///< Host memory, which has no device.
  /// "cpu" or "cuda:1"
  HMC_API std::string toString() const;
  /// The same device.
  friend bool operator==(const Device& a, const Device& b) {
    return a.kind == b.kind && a.index == b.index;
  }
  /// Another device.
  friend bool operator!=(const Device& a, const Device& b) { return !(a == b); }
};

/// Reads what a user wrote: "cuda" (device 0) or "cuda:1". The sentence lists the kinds.
HMC_API Status parseDevice(const std::string& text, Device& device);

}  // namespace hmc
