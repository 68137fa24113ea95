#pragma once

#include "memory/runtime.h"

namespace hmc {

// The calls that ROCm's HIP and MUSA took over from CUDA's runtime API, under names of their own:
// row(name without the vendor's prefix, arguments). The vendors' folders say which headers were
// compared. Streams and events are pointers to structs that nobody looks into, enums are ints.
// clang-format off
#define HMC_CUDA_SHAPED_FUNCTIONS(row)                                     \
  row(RuntimeGetVersion, (int*))                                           \
  row(GetDeviceCount, (int*))                                              \
  row(GetDevice, (int*))                                                   \
  row(SetDevice, (int))                                                    \
  row(DeviceGetPCIBusId, (char*, int, int))                                \
  row(DeviceSynchronize, ())                                               \
  row(GetLastError, ())                                                    \
  row(Malloc, (void**, size_t))                                            \
  row(Free, (void*))                                                       \
  row(MemGetInfo, (size_t*, size_t*))                                      \
  row(MemsetAsync, (void*, int, size_t, void*))                            \
  row(MemcpyAsync, (void*, const void*, size_t, int, void*))               \
  row(MemcpyPeerAsync, (void*, int, const void*, int, size_t, void*))      \
  row(PointerGetAttributes, (CudaShapedPointer*, const void*))             \
  row(HostRegister, (void*, size_t, unsigned))                             \
  row(HostUnregister, (void*))                                             \
  row(StreamCreateWithFlags, (void**, unsigned))                           \
  row(StreamDestroy, (void*))                                              \
  row(StreamWaitEvent, (void*, void*, unsigned))                           \
  row(EventCreateWithFlags, (void**, unsigned))                            \
  row(EventDestroy, (void*))                                               \
  row(EventRecord, (void*, void*))                                         \
  row(EventQuery, (void*))                                                 \
  row(IpcGetMemHandle, (CudaShapedHandle*, void*))                         \
  row(IpcOpenMemHandle, (void**, CudaShapedHandle, unsigned))              \
  row(IpcCloseMemHandle, (void*))
// clang-format on

struct CudaShapedHandle {
  char bytes[64];
};
// Vendors add members at the end, so there is room for them.
struct CudaShapedPointer {
  int type;
  int device;
  void* devicePointer;
  void* hostPointer;
  char more[64];
};

// Values that CUDA's runtime API and all that are shaped like it have in common.
struct CudaShaped {
  enum Error : int {
    kSuccess = 0,
    kInvalidValue = 1,
    kOutOfMemory = 2,
    kNoDevice = 100,
    kNotReady = 600,
    kAlreadyRegistered = 712,
    kNotSupported = 801,
  };
  enum Value : int {
    kHostToDevice = 1,
    kDeviceToHost = 2,
    kDeviceToDevice = 3,
    kStreamNonBlocking = 1,
    kEventDisableTiming = 2,
    kHostPortable = 1,
    kHostMapped = 2,
  };
};

// The functions of one such library: all of them, or nothing.
struct CudaShapedApi {
  // `prefix` is what their names begin with. The first of the libraries that is there is taken; the
  // sentence ends with `fix`.
  static Result<CudaShapedApi> load(const char* prefix, const std::vector<std::string>& libraries,
                                    const char* fix);
  CudaShapedApi(const char* namesBegin, DynamicLibrary loaded)
      : prefix(namesBegin), library(std::move(loaded)) {}
  // Ok, or what `call` failed with, in the runtime's words.
  Status check(int result, const char* call) const;

#define HMC_ROW(name, arguments) int(*name) arguments = nullptr;
  HMC_CUDA_SHAPED_FUNCTIONS(HMC_ROW)
#undef HMC_ROW
  const char* (*GetErrorName)(int) = nullptr;    // NOLINT: the vendor's name
  const char* (*GetErrorString)(int) = nullptr;  // NOLINT: the vendor's name

  std::string prefix;
  DynamicLibrary library;
};

// HMC_SHAPED(api, Free, ptr): leaves the function with the Status of a call that failed.
#define HMC_SHAPED(api, name, ...) HMC_TRY((api).check((api).name(__VA_ARGS__), #name))

// What such runtimes do in the same way. What they do not is left to the vendor's class.
class CudaShapedRuntime : public Runtime {
 public:
  CudaShapedRuntime(CudaShapedApi api, DeviceKind kind) : api_(std::move(api)), kind_(kind) {}

  Result<uintptr_t> use(int index) override;
  void restore(uintptr_t before) override;
  Result<void*> allocate(size_t size) override;
  Status release(void* ptr) override;
  Result<Space> space() override;
  Result<Region> locate(const void* ptr) override;
  Result<void*> createStream() override;
  void destroyStream(void* stream) override { (void)api_.StreamDestroy(stream); }
  Status synchronize() override;
  Status zero(void* ptr, size_t size, void* stream) override;
  Status copy(const CopyPiece& piece, const Device& to, const Device& from, void* stream) override;
  Result<void*> createEvent() override;
  void destroyEvent(void* event) override { (void)api_.EventDestroy(event); }
  Status record(void* event, void* stream) override;
  Result<bool> hasPassed(void* event) override;
  Status wait(void* stream, void* event) override;
  Result<std::string> exportMemory(const Region& whole) override;
  void withdraw(const std::string&) override {}
  Result<void*> importMemory(const std::string& handle) override;
  void close(void* ptr, const std::string&) override { (void)api_.IpcCloseMemHandle(ptr); }
  Status pin(const Region& host) override;
  void unpin(const Region& host) override { (void)api_.HostUnregister(host.ptr); }

  // One for each device; their UUIDs are made of PCI addresses.
  Result<std::vector<Backend::DeviceFacts>> devices(const char* name);

 protected:
  virtual int deviceMemoryType() const = 0;
  virtual unsigned ipcFlags() const = 0;
  // The allocation around what is known to be device memory; its device is current.
  virtual Result<Region> rangeOf(const void* ptr, const Device& device) = 0;

  const CudaShapedApi api_;
  const DeviceKind kind_;
};

}  // namespace hmc
