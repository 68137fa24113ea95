#include <cstring>

#include "base/error.h"
#include "memory/cnrt/cnrt_api.h"
#include "memory/runtime_backend.h"

// Cambricon MLUs.
namespace hmc::cnrt {

namespace {

constexpr const char* kFix =
    "it comes with Neuware (CNToolkit 3.0 or newer): install that and the driver, put "
    "/usr/local/neuware/lib64 in LD_LIBRARY_PATH, or give the container the MLUs (docker run "
    "--device /dev/cambricon_dev0 --device /dev/cambricon_ctl)";

Code codeOf(int result) {
  switch (result) {
    case kArgsInvalid:
    case kDeviceInvalid:
      return Code::invalidArgument;
    case kOutOfMemory:
    case kHostOutOfMemory:
      return Code::exhausted;
    case kNotSupported:
    case kNoDevice:
      return Code::unsupported;
    default:
      return Code::failed;
  }
}

class CnrtRuntime final : public Runtime {
 public:
  static Result<std::unique_ptr<CnrtRuntime>> create() {
    HMC_ASSIGN(auto library, openRuntime({"libcnrt.so"}, kFix));
    auto made = std::make_unique<CnrtRuntime>(std::move(library));
    HMC_TRY(made->complete());
    return made;
  }
  explicit CnrtRuntime(DynamicLibrary library) : library_(std::move(library)) {}

  Result<Backend::Facts> facts() {
    int version[3] = {};
    HMC_TRY(check(cnrtGetLibVersion(&version[0], &version[1], &version[2]), "cnrtGetLibVersion"));
    Backend::Facts facts{
        DeviceKind::cnrt, fmt::format("Neuware, CNRT {}.{}", version[0], version[1]), {}};
    unsigned count = 0;
    HMC_TRY(check(cnrtGetDeviceCount(&count), "cnrtGetDeviceCount"));
    for (int index = 0; index < static_cast<int>(count); ++index) {
      char address[64] = "";
      HMC_TRY(
          check(cnrtDeviceGetPCIBusId(address, sizeof(address), index), "cnrtDeviceGetPCIBusId"));
      CnrtProperties properties{};
      HMC_TRY(check(cnrtGetDeviceProperties(&properties, index), "cnrtGetDeviceProperties"));
      facts.devices.push_back({uuidOfPciAddress(address), properties.name});
    }
    return facts;
  }

  Result<uintptr_t> use(int index) override {
    int before = 0;
    HMC_TRY(check(cnrtGetDevice(&before), "cnrtGetDevice"));
    if (before != index) HMC_TRY(check(cnrtSetDevice(index), "cnrtSetDevice"));
    return static_cast<uintptr_t>(before);
  }
  void restore(uintptr_t before) override { (void)cnrtSetDevice(static_cast<int>(before)); }

  Result<void*> allocate(size_t size) override {
    return made(&CnrtRuntime::cnrtMalloc, "cnrtMalloc", size);
  }
  Status release(void* ptr) override { return check(cnrtFree(ptr), "cnrtFree"); }
  Result<Space> space() override {
    Space space{};
    HMC_TRY(check(cnrtMemGetInfo(&space.free, &space.total), "cnrtMemGetInfo"));
    return space;
  }
  Result<Region> locate(const void* ptr) override {
    CnrtPointer known{};
    const int asked = cnrtPointerGetAttributes(&known, ptr);
    if (asked != kSuccess) (void)cnrtGetLastError();
    if (asked != kSuccess || known.type != kMemoryTypeDevice) {
      return error(Code::notFound, "{} is not MLU device memory", ptr);
    }
    return Region{known.deviceBasePointer, known.size, {DeviceKind::cnrt, known.device}};
  }

  Result<void*> createStream() override {
    return made(&CnrtRuntime::cnrtQueueCreate, "cnrtQueueCreate");
  }
  void destroyStream(void* stream) override { (void)cnrtQueueDestroy(stream); }
  Status synchronize() override { return check(cnrtSyncDevice(), "cnrtSyncDevice"); }
  Status zero(void* ptr, size_t size, void* stream) override {
    return check(cnrtMemsetAsync(ptr, 0, size, stream), "cnrtMemsetAsync");
  }
  Status copy(const CopyPiece& piece, const Device& to, const Device& from, void* stream) override {
    auto* src = const_cast<void*>(piece.src);
    if (!to.isHost() && !from.isHost() && to.index != from.index) {
      return check(cnrtMemcpyPeerAsync(piece.dst, to.index, src, from.index, piece.size, stream),
                   "cnrtMemcpyPeerAsync");
    }
    const int direction = to.isHost()     ? kDeviceToHost
                          : from.isHost() ? kHostToDevice
                                          : kDeviceToDevice;
    return check(cnrtMemcpyAsync(piece.dst, src, piece.size, stream, direction), "cnrtMemcpyAsync");
  }

  Result<void*> createEvent() override {
    return made(&CnrtRuntime::cnrtNotifierCreateWithFlags, "cnrtNotifierCreateWithFlags",
                unsigned{kNotifierDisableTiming});
  }
  void destroyEvent(void* event) override { (void)cnrtNotifierDestroy(event); }
  Status record(void* event, void* stream) override {
    return check(cnrtPlaceNotifier(event, stream), "cnrtPlaceNotifier");
  }
  Result<bool> hasPassed(void* event) override {
    const int result = cnrtQueryNotifier(event);
    if (result == kNotReady || result == kBusy) {
      (void)cnrtGetLastError();
      return false;
    }
    HMC_TRY(check(result, "cnrtQueryNotifier"));
    return true;
  }
  Status wait(void* stream, void* event) override {
    return check(cnrtQueueWaitNotifier(event, stream, 0), "cnrtQueueWaitNotifier");
  }

  // The handle is a pointer that stands for itself in every process.
  Result<std::string> exportMemory(const Region& whole) override {
    HMC_ASSIGN(void* handle,
               made(&CnrtRuntime::cnrtAcquireMemHandle, "cnrtAcquireMemHandle", whole.ptr));
    return std::string(reinterpret_cast<const char*>(&handle), sizeof(handle));
  }
  void withdraw(const std::string&) override {}
  Result<void*> importMemory(const std::string& bytes) override {
    void* handle = nullptr;
    if (bytes.size() != sizeof(handle)) {
      return error(Code::invalidArgument, "an IPC handle of cnrt has {} bytes, not {}",
                   sizeof(handle), bytes.size());
    }
    std::memcpy(&handle, bytes.data(), sizeof(handle));
    return made(&CnrtRuntime::cnrtMapMemHandle, "cnrtMapMemHandle", handle, 0);
  }
  void close(void* ptr, const std::string&) override { (void)cnrtUnMapMemHandle(ptr); }
  Status exportDmaBuf(const Region&, Share&) override {
    return error(Code::unsupported,
                 "CNRT exports no dma-buf: NICs do not reach MLU memory, stage it on the host");
  }

  Status pin(const Region& host) override {
    if (!hostRegister_) {
      return error(Code::unsupported,
                   "{} has no cnrtHostRegister(): install a newer Neuware to pin host memory",
                   library_.path());
    }
    const int result = hostRegister_(host.ptr, host.size, 0);
    if (codeOf(result) == Code::exhausted) {
      (void)cnrtGetLastError();
      return error(Code::exhausted,
                   "{} bytes of host memory cannot be pinned: MLUs take {} MiB of a process; pin "
                   "less at once",
                   host.size, kPinLimit >> 20);
    }
    return check(result, "cnrtHostRegister");
  }
  void unpin(const Region& host) override { (void)hostUnregister_(host.ptr); }

 private:
  Status complete() {
#define HMC_ROW(name, arguments) HMC_TRY(lookUp(library_, #name, name));
    HMC_CNRT_FUNCTIONS(HMC_ROW)
#undef HMC_ROW
    HMC_TRY(lookUp(library_, "cnrtGetErrorName", cnrtGetErrorName));
    HMC_TRY(lookUp(library_, "cnrtGetErrorStr", cnrtGetErrorStr));
    auto found = library_.symbol<HostRegister>("cnrtHostRegister");
    auto undo = library_.symbol<HostUnregister>("cnrtHostUnregister");
    if (found.ok() && undo.ok()) {
      hostRegister_ = *found;
      hostUnregister_ = *undo;
    }
    return Status();
  }

  Status check(int result, const char* call) const {
    if (result == kSuccess) return Status();
    (void)cnrtGetLastError();
    return error(codeOf(result), "{}: {} ({})", call, cnrtGetErrorStr(result),
                 cnrtGetErrorName(result));
  }

  // What a call of ours leaves in its first argument.
  template <class Call, class... Arguments>
  Result<void*> made(Call call, const char* name, Arguments... arguments) const {
    void* value = nullptr;
    HMC_TRY(check((this->*call)(&value, arguments...), name));
    return value;
  }

#define HMC_ROW(name, arguments) int(*name) arguments = nullptr;
  HMC_CNRT_FUNCTIONS(HMC_ROW)
#undef HMC_ROW
  const char* (*cnrtGetErrorName)(int) = nullptr;  // NOLINT: the vendor's name
  const char* (*cnrtGetErrorStr)(int) = nullptr;   // NOLINT: the vendor's name
  HostRegister* hostRegister_ = nullptr;
  HostUnregister* hostUnregister_ = nullptr;

  const DynamicLibrary library_;
};

}  // namespace

Result<Backend*> load() {
  HMC_ASSIGN(auto runtime, CnrtRuntime::create());
  auto facts = runtime->facts();
  return makeBackend(std::move(facts), std::move(runtime), kFix);
}

}  // namespace hmc::cnrt
