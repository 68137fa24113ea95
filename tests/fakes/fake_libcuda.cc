// A libcuda.so.1 whose devices are memfds and threads, as strict as NVIDIA's: it wants a current
// context, whole granules and access to memory, runs copies later, and breaks for good. Loaded by
// the real loader, so that src/memory/cuda is tested, with sanitizers too, where there is no GPU.
#include "fakes/fake_libcuda.h"

#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <sstream>

#include "fakes/fake_libcuda_state.h"

namespace hmc::cuda {

namespace fake {

namespace {

thread_local std::vector<CuContext> contextStack;

size_t numberIn(const char* variable, size_t otherwise) {
  const char* text = std::getenv(variable);
  return text ? std::strtoull(text, nullptr, 10) : otherwise;
}

// As NVIDIA's: the first number that is no device ends the list.
std::vector<int> visibleDevices(int count) {
  std::vector<int> visible;
  const char* chosen = std::getenv("CUDA_VISIBLE_DEVICES");
  for (int i = 0; !chosen && i < count; ++i) visible.push_back(i);
  std::istringstream numbers(chosen ? chosen : "");
  for (std::string one; std::getline(numbers, one, ',');) {
    char* end = nullptr;
    const long number = std::strtol(one.c_str(), &end, 10);
    if (end == one.c_str() || number < 0 || number >= count) break;
    visible.push_back(static_cast<int>(number));
  }
  return visible;
}

struct ErrorText {
  CuResult code;
  const char* name;
  const char* text;
};
constexpr ErrorText kErrors[] = {
    {kSuccess, "CUDA_SUCCESS", "no error"},
    {kInvalidValue, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {kOutOfMemory, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {kNotInitialized, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
    {kDeinitialized, "CUDA_ERROR_DEINITIALIZED", "driver shutting down"},
    {kNoDevice, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {kInvalidDevice, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    {kInvalidContext, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {kMapFailed, "CUDA_ERROR_MAP_FAILED", "mapping of buffer object failed"},
    {kInvalidHandle, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
    {kNoSuchName, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {kNotReady, "CUDA_ERROR_NOT_READY", "device not ready"},
    {kIllegalAddress, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"},
    {kAlreadyRegistered, "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED",
     "part or all of the requested memory range is already mapped"},
    {kNotRegistered, "CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED",
     "pointer does not correspond to a registered memory region"},
    {kNotPermitted, "CUDA_ERROR_NOT_PERMITTED", "operation not permitted"},
    {kNotSupported, "CUDA_ERROR_NOT_SUPPORTED", "operation not supported"},
};

CuResult errorText(CuResult code, const char* ErrorText::*member, const char** text) {
  for (const ErrorText& one : kErrors) {
    if (one.code != code) continue;
    *text = one.*member;
    return kSuccess;
  }
  *text = nullptr;
  return kInvalidValue;
}

CuResult gpuNumber(CuDevice device, GpuState*& gpu) {
  std::lock_guard lock(driver().mutex);
  gpu = driver().gpuAt(device);
  return gpu ? kSuccess : kInvalidDevice;
}

}  // namespace

DriverState& driver() {
  static auto* state = new DriverState;
  return *state;
}

GpuState* DriverState::gpuAt(int index) {
  const bool known = index >= 0 && index < static_cast<int>(gpus.size());
  return known ? &gpus[static_cast<size_t>(index)] : nullptr;
}

GpuState* DriverState::gpuOfPhysical(int physical) {
  for (GpuState& gpu : gpus) {
    if (gpu.physical == physical) return &gpu;
  }
  return nullptr;
}

CuResult enter(const char* function) {
  // A child of fork() looks at nothing else: a thread that it does not have may hold the mutex.
  if (driver().pid.load() != getpid()) return kNotInitialized;
  std::lock_guard lock(driver().mutex);
  auto found = driver().failures.find(function);
  if (found == driver().failures.end() || --found->second.calls > 0) return kSuccess;
  const CuResult code = found->second.code;
  driver().failures.erase(found);
  return code;
}

CuResult enter(const char* function, CuContext& context) {
  HMC_FAKE_CHECK(enter(function));
  if (contextStack.empty()) return kInvalidContext;
  context = contextStack.back();
  return context->failure.load();
}

}  // namespace fake

using namespace fake;  // NOLINT: what follows is the driver's interface

FAKE CuResult cuInit(unsigned flags) {
  DriverState& state = driver();
  if (state.pid.load() != 0) return enter(__func__);
  if (flags != 0) return kInvalidValue;
  std::lock_guard lock(state.mutex);
  if (state.pid.load() != 0) return kSuccess;
  const std::vector<int> visible =
      visibleDevices(static_cast<int>(numberIn("HMC_FAKE_DEVICES", 2)));
  if (visible.empty()) return kNoDevice;
  for (int physical : visible) {
    GpuState& gpu = state.gpus.emplace_back();
    gpu.physical = physical;
    gpu.index = static_cast<int>(state.gpus.size()) - 1;
  }
  state.memory = numberIn("HMC_FAKE_MEMORY", size_t{8} << 30);
  state.pid.store(getpid());
  return kSuccess;
}

FAKE CuResult cuDriverGetVersion(int* version) {
  *version = 13000;
  return kSuccess;
}

FAKE CuResult cuGetErrorName(CuResult code, const char** name) {
  return errorText(code, &ErrorText::name, name);
}

FAKE CuResult cuGetErrorString(CuResult code, const char** text) {
  return errorText(code, &ErrorText::text, text);
}

FAKE CuResult cuDeviceGetCount(int* count) {
  HMC_FAKE_CHECK(enter(__func__));
  std::lock_guard lock(driver().mutex);
  *count = static_cast<int>(driver().gpus.size());
  return kSuccess;
}

FAKE CuResult cuDeviceGet(CuDevice* device, int index) {
  HMC_FAKE_CHECK(enter(__func__));
  GpuState* gpu = nullptr;
  HMC_FAKE_CHECK(gpuNumber(index, gpu));
  *device = gpu->index;
  return kSuccess;
}

FAKE CuResult cuDeviceGetName(char* name, int size, CuDevice device) {
  HMC_FAKE_CHECK(enter(__func__));
  GpuState* gpu = nullptr;
  HMC_FAKE_CHECK(gpuNumber(device, gpu));
  if (size < 1) return kInvalidValue;
  const std::string text = "Fake GPU " + std::to_string(gpu->physical);
  std::strncpy(name, text.c_str(), static_cast<size_t>(size) - 1);
  name[size - 1] = '\0';
  return kSuccess;
}

FAKE CuResult cuDeviceGetUuid_v2(CuUuid* uuid, CuDevice device) {
  HMC_FAKE_CHECK(enter(__func__));
  GpuState* gpu = nullptr;
  HMC_FAKE_CHECK(gpuNumber(device, gpu));
  std::memcpy(uuid->bytes, "fake cuda gpu   ", sizeof(uuid->bytes));
  uuid->bytes[15] = static_cast<char>(gpu->physical);
  return kSuccess;
}

FAKE CuResult cuDeviceGetAttribute(int* value, int attribute, CuDevice device) {
  HMC_FAKE_CHECK(enter(__func__));
  GpuState* gpu = nullptr;
  HMC_FAKE_CHECK(gpuNumber(device, gpu));
  switch (attribute) {
    case kVirtualMemory:
    case kPosixDescriptor:
    case kRdmaWithVirtualMemory:
    case kDmaBuf:
    case kHostPointers:
      *value = 1;
      return kSuccess;
    case kMultiprocessors:
      *value = 4;
      return kSuccess;
    case kFabric:
      *value = 0;
      return kSuccess;
    default:
      return kInvalidValue;
  }
}

FAKE CuResult cuDeviceCanAccessPeer(int* can, CuDevice device, CuDevice peer) {
  HMC_FAKE_CHECK(enter(__func__));
  GpuState* gpu = nullptr;
  HMC_FAKE_CHECK(gpuNumber(device, gpu));
  HMC_FAKE_CHECK(gpuNumber(peer, gpu));
  *can = device != peer ? 1 : 0;
  return kSuccess;
}

FAKE CuResult cuDevicePrimaryCtxRetain(CuContext* context, CuDevice device) {
  HMC_FAKE_CHECK(enter(__func__));
  std::lock_guard lock(driver().mutex);
  GpuState* gpu = driver().gpuAt(device);
  if (!gpu) return kInvalidDevice;
  if (!gpu->context) gpu->context = addContext(*gpu);
  *context = gpu->context;
  return kSuccess;
}

FAKE CuResult cuCtxPushCurrent_v2(CuContext context) {
  HMC_FAKE_CHECK(enter(__func__));
  std::lock_guard lock(driver().mutex);
  if (driver().contexts.count(context) == 0) return kInvalidContext;
  contextStack.push_back(context);
  return kSuccess;
}

FAKE CuResult cuCtxPopCurrent_v2(CuContext* context) {
  HMC_FAKE_CHECK(enter(__func__));
  if (contextStack.empty()) return kInvalidContext;
  if (context) *context = contextStack.back();
  contextStack.pop_back();
  return kSuccess;
}

FAKE CuResult cuCtxCreate_v2(CuContext* context, unsigned /*flags*/, CuDevice device) {
  HMC_FAKE_CHECK(enter(__func__));
  std::lock_guard lock(driver().mutex);
  GpuState* gpu = driver().gpuAt(device);
  if (!gpu) return kInvalidDevice;
  *context = addContext(*gpu);
  contextStack.push_back(*context);
  return kSuccess;
}

FAKE CuResult cuCtxGetCurrent(CuContext* context) {
  HMC_FAKE_CHECK(enter(__func__));
  *context = contextStack.empty() ? nullptr : contextStack.back();
  return kSuccess;
}

FAKE CuResult cuCtxSynchronize() {
  CuContext context = nullptr;
  HMC_FAKE_CHECK(enter(__func__, context));
  return synchronize(context);
}

FAKE void hmcFakeCudaFail(const char* function, int nth, int code) {
  std::lock_guard lock(driver().mutex);
  driver().failures.erase(function);
  if (nth > 0) driver().failures[function] = {nth, code};
}

FAKE size_t hmcFakeCudaDepth() {
  return contextStack.size();
}

FAKE void hmcFakeCudaLive(test::FakeCudaLive* live) {
  std::lock_guard lock(driver().mutex);
  *live = {};
  live->handles = driver().handles.size();
  live->ranges = driver().ranges.size();
  live->mappings = driver().mappings.size();
  live->pinned = driver().registered.size();
  for (const GpuState& gpu : driver().gpus) live->bytes += gpu.used;
}

}  // namespace hmc::cuda
