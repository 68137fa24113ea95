#include "memory/cuda_shaped_runtime.h"

#include <cstring>

#include "base/error.h"

namespace hmc {

namespace {

Code codeOf(int result) {
  switch (result) {
    case CudaShaped::kInvalidValue:
      return Code::invalidArgument;
    case CudaShaped::kOutOfMemory:
      return Code::exhausted;
    case CudaShaped::kAlreadyRegistered:
      return Code::alreadyExists;
    case CudaShaped::kNotSupported:
    case CudaShaped::kNoDevice:
      return Code::unsupported;
    default:
      return Code::failed;
  }
}

}  // namespace

Result<CudaShapedApi> CudaShapedApi::load(const char* prefix,
                                          const std::vector<std::string>& libraries,
                                          const char* fix) {
  HMC_ASSIGN(auto library, openRuntime(libraries, fix));
  CudaShapedApi api(prefix, std::move(library));
#define HMC_ROW(call, arguments) HMC_TRY(lookUp(api.library, api.prefix + #call, api.call));
  HMC_CUDA_SHAPED_FUNCTIONS(HMC_ROW)
#undef HMC_ROW
  HMC_TRY(lookUp(api.library, api.prefix + "GetErrorName", api.GetErrorName));
  HMC_TRY(lookUp(api.library, api.prefix + "GetErrorString", api.GetErrorString));
  return api;
}

Status CudaShapedApi::check(int result, const char* call) const {
  if (result == CudaShaped::kSuccess) return Status();
  // The thread's next call must not find it again: others look at the last error, too.
  (void)GetLastError();
  return error(codeOf(result), "{}{}: {} ({})", prefix, call, GetErrorString(result),
               GetErrorName(result));
}

Result<std::vector<Backend::DeviceFacts>> CudaShapedRuntime::devices(const char* name) {
  int count = 0;
  HMC_SHAPED(api_, GetDeviceCount, &count);
  std::vector<Backend::DeviceFacts> devices;
  for (int index = 0; index < count; ++index) {
    char address[64] = "";
    HMC_SHAPED(api_, DeviceGetPCIBusId, address, sizeof(address), index);
    devices.push_back({uuidOfPciAddress(address), fmt::format("{} at {}", name, address)});
  }
  return devices;
}

Result<uintptr_t> CudaShapedRuntime::use(int index) {
  int before = 0;
  HMC_SHAPED(api_, GetDevice, &before);
  if (before != index) HMC_SHAPED(api_, SetDevice, index);
  return static_cast<uintptr_t>(before);
}

void CudaShapedRuntime::restore(uintptr_t before) {
  int now = 0;
  if (api_.GetDevice(&now) == CudaShaped::kSuccess && now == static_cast<int>(before)) return;
  (void)api_.SetDevice(static_cast<int>(before));
}

Result<void*> CudaShapedRuntime::allocate(size_t size) {
  void* ptr = nullptr;
  HMC_SHAPED(api_, Malloc, &ptr, size);
  return ptr;
}

Status CudaShapedRuntime::release(void* ptr) {
  return api_.check(api_.Free(ptr), "Free");
}

Result<Runtime::Space> CudaShapedRuntime::space() {
  Space space{};
  HMC_SHAPED(api_, MemGetInfo, &space.free, &space.total);
  return space;
}

Result<Region> CudaShapedRuntime::locate(const void* ptr) {
  CudaShapedPointer known{};
  if (api_.PointerGetAttributes(&known, ptr) != CudaShaped::kSuccess) {
    (void)api_.GetLastError();
    known.type = -1;
  }
  if (known.type != deviceMemoryType()) {
    return error(Code::notFound, "{} is not {} device memory", ptr, deviceKindName(kind_));
  }
  UsedDevice used(*this, known.device);
  HMC_TRY(used.status());
  return rangeOf(ptr, {kind_, known.device});
}

Result<void*> CudaShapedRuntime::createStream() {
  void* stream = nullptr;
  HMC_SHAPED(api_, StreamCreateWithFlags, &stream, CudaShaped::kStreamNonBlocking);
  return stream;
}

Status CudaShapedRuntime::synchronize() {
  return api_.check(api_.DeviceSynchronize(), "DeviceSynchronize");
}

Status CudaShapedRuntime::zero(void* ptr, size_t size, void* stream) {
  return api_.check(api_.MemsetAsync(ptr, 0, size, stream), "MemsetAsync");
}

Status CudaShapedRuntime::copy(const CopyPiece& piece, const Device& to, const Device& from,
                               void* stream) {
  if (!to.isHost() && !from.isHost() && to.index != from.index) {
    return api_.check(
        api_.MemcpyPeerAsync(piece.dst, to.index, piece.src, from.index, piece.size, stream),
        "MemcpyPeerAsync");
  }
  const int direction = to.isHost()     ? CudaShaped::kDeviceToHost
                        : from.isHost() ? CudaShaped::kHostToDevice
                                        : CudaShaped::kDeviceToDevice;
  return api_.check(api_.MemcpyAsync(piece.dst, piece.src, piece.size, direction, stream),
                    "MemcpyAsync");
}

Result<void*> CudaShapedRuntime::createEvent() {
  void* event = nullptr;
  HMC_SHAPED(api_, EventCreateWithFlags, &event, CudaShaped::kEventDisableTiming);
  return event;
}

Status CudaShapedRuntime::record(void* event, void* stream) {
  return api_.check(api_.EventRecord(event, stream), "EventRecord");
}

Result<bool> CudaShapedRuntime::hasPassed(void* event) {
  const int result = api_.EventQuery(event);
  if (result == CudaShaped::kNotReady) {
    (void)api_.GetLastError();
    return false;
  }
  HMC_TRY(api_.check(result, "EventQuery"));
  return true;
}

Status CudaShapedRuntime::wait(void* stream, void* event) {
  return api_.check(api_.StreamWaitEvent(stream, event, 0), "StreamWaitEvent");
}

Result<std::string> CudaShapedRuntime::exportMemory(const Region& whole) {
  CudaShapedHandle handle{};
  HMC_SHAPED(api_, IpcGetMemHandle, &handle, whole.ptr);
  return std::string(handle.bytes, sizeof(handle.bytes));
}

Result<void*> CudaShapedRuntime::importMemory(const std::string& bytes) {
  CudaShapedHandle handle{};
  if (bytes.size() != sizeof(handle.bytes)) {
    return error(Code::invalidArgument, "an IPC handle of {} has {} bytes, not {}",
                 deviceKindName(kind_), sizeof(handle.bytes), bytes.size());
  }
  std::memcpy(handle.bytes, bytes.data(), bytes.size());
  void* ptr = nullptr;
  HMC_SHAPED(api_, IpcOpenMemHandle, &ptr, handle, ipcFlags());
  return ptr;
}

Status CudaShapedRuntime::pin(const Region& host) {
  return api_.check(
      api_.HostRegister(host.ptr, host.size, CudaShaped::kHostPortable | CudaShaped::kHostMapped),
      "HostRegister");
}

}  // namespace hmc
