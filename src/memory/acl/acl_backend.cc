#include <map>

#include "base/error.h"
#include "memory/acl/acl_api.h"
#include "memory/runtime_backend.h"

// Ascend NPUs.
namespace hmc::acl {

namespace {

constexpr const char* kFix =
    "it comes with CANN 8.5 or newer: install that and the driver, run its set_env.sh for "
    "LD_LIBRARY_PATH, join the group HwHiAiUser, or give the container the NPUs (docker run "
    "--device /dev/davinci0 --device /dev/davinci_manager --device /dev/hisi_hdc)";

Code codeOf(int result) {
  switch (result) {
    case kInvalidParam:
    case kParamInvalid:
      return Code::invalidArgument;
    case kOutOfMemory:
      return Code::exhausted;
    case kNotSupported:
      return Code::unsupported;
    default:
      return Code::failed;
  }
}

// The whole pages of a range, which are all that can be registered: what is left at its ends is
// copied as memory that is not pinned.
Region wholePages(const Region& host) {
  const auto first = (reinterpret_cast<uintptr_t>(host.ptr) + kPage - 1) / kPage * kPage;
  const auto end = (reinterpret_cast<uintptr_t>(host.ptr) + host.size) / kPage * kPage;
  return {reinterpret_cast<void*>(first), end > first ? end - first : 0, {}};  // NOLINT
}

class AclRuntime final : public Runtime {
 public:
  static Result<std::unique_ptr<AclRuntime>> create() {
    HMC_ASSIGN(auto library, openRuntime({"libascendcl.so"}, kFix));
    auto made = std::make_unique<AclRuntime>(std::move(library));
    HMC_TRY(made->complete());
    return made;
  }
  explicit AclRuntime(DynamicLibrary library) : library_(std::move(library)) {}

  Result<Backend::Facts> facts() {
    int32_t version[3] = {};
    HMC_TRY(check(aclrtGetVersion(&version[0], &version[1], &version[2]), "aclrtGetVersion"));
    Backend::Facts facts{
        DeviceKind::acl, fmt::format("CANN, AscendCL {}.{}", version[0], version[1]), {}};
    uint32_t count = 0;
    HMC_TRY(check(aclrtGetDeviceCount(&count), "aclrtGetDeviceCount"));
    for (int index = 0; index < static_cast<int>(count); ++index) {
      int32_t physical = index;
      (void)aclrtGetPhyDevIdByLogicDevId(index, &physical);
      Backend::DeviceFacts device{uuidOfPciAddress(fmt::format("npu {}", physical)),
                                  fmt::format("{} {}", aclrtGetSocName(), physical)};
      AclUuid uuid{};
      // Older NPUs have none, but the same numbers in all processes of a machine.
      if (aclrtDeviceGetUuid(index, &uuid) == kSuccess) {
        std::copy(std::begin(uuid.bytes), std::end(uuid.bytes), device.uuid.bytes.begin());
      }
      facts.devices.push_back(std::move(device));
    }
    return facts;
  }

  // A thread has a context, of which a device has a default one.
  Result<uintptr_t> use(int index) override {
    void* before = nullptr;
    if (aclrtGetCurrentContext(&before) != kSuccess) before = nullptr;
    std::lock_guard lock(mutex_);
    void*& context = contexts_[index];
    if (context) {
      HMC_TRY(check(aclrtSetCurrentContext(context), "aclrtSetCurrentContext"));
    } else {
      HMC_TRY(check(aclrtSetDevice(index), "aclrtSetDevice"));
      HMC_TRY(check(aclrtGetCurrentContext(&context), "aclrtGetCurrentContext"));
    }
    return reinterpret_cast<uintptr_t>(before);
  }
  // A thread that had no context keeps ours: none cannot be set.
  void restore(uintptr_t before) override {
    if (before != 0) (void)aclrtSetCurrentContext(reinterpret_cast<void*>(before));  // NOLINT
  }

  Result<void*> allocate(size_t size) override {
    void* ptr = nullptr;
    HMC_TRY(check(aclrtMalloc(&ptr, size, kHugeFirst), "aclrtMalloc"));
    return ptr;
  }
  Status release(void* ptr) override { return check(aclrtFree(ptr), "aclrtFree"); }
  Result<Space> space() override {
    Space space{};
    HMC_TRY(check(aclrtGetMemInfo(kHbm, &space.free, &space.total), "aclrtGetMemInfo"));
    return space;
  }
  Result<Region> locate(const void* ptr) override {
    AclPointer known{};
    if (aclrtPointerGetAttributes(ptr, &known) != kSuccess || known.type != kLocationDevice) {
      return error(Code::notFound, "{} is not Ascend device memory", ptr);
    }
    Region region{nullptr, 0, {DeviceKind::acl, static_cast<int>(known.device)}};
    UsedDevice used(*this, region.device.index);
    HMC_TRY(used.status());
    HMC_TRY(check(aclrtMemGetAddressRange(const_cast<void*>(ptr), &region.ptr, &region.size),
                  "aclrtMemGetAddressRange"));
    return region;
  }

  Result<void*> createStream() override {
    void* stream = nullptr;
    HMC_TRY(check(aclrtCreateStream(&stream), "aclrtCreateStream"));
    return stream;
  }
  void destroyStream(void* stream) override { (void)aclrtDestroyStream(stream); }
  Status synchronize() override {
    return check(aclrtSynchronizeDevice(), "aclrtSynchronizeDevice");
  }
  Status zero(void* ptr, size_t size, void* stream) override {
    return check(aclrtMemsetAsync(ptr, size, 0, size, stream), "aclrtMemsetAsync");
  }
  Status copy(const CopyPiece& piece, const Device& to, const Device& from, void* stream) override {
    if (!to.isHost() && !from.isHost()) HMC_TRY(allowPeers(to.index, from.index));
    const int direction = to.isHost()     ? kDeviceToHost
                          : from.isHost() ? kHostToDevice
                                          : kDeviceToDevice;
    return check(aclrtMemcpyAsync(piece.dst, piece.size, piece.src, piece.size, direction, stream),
                 "aclrtMemcpyAsync");
  }

  Result<void*> createEvent() override {
    void* event = nullptr;
    HMC_TRY(check(aclrtCreateEventExWithFlag(&event, kEventSync), "aclrtCreateEventExWithFlag"));
    return event;
  }
  void destroyEvent(void* event) override { (void)aclrtDestroyEvent(event); }
  Status record(void* event, void* stream) override {
    return check(aclrtRecordEvent(event, stream), "aclrtRecordEvent");
  }
  Result<bool> hasPassed(void* event) override {
    int status = 0;
    HMC_TRY(check(aclrtQueryEventStatus(event, &status), "aclrtQueryEventStatus"));
    return status == kEventPassed;
  }
  Status wait(void* stream, void* event) override {
    return check(aclrtStreamWaitEvent(stream, event), "aclrtStreamWaitEvent");
  }

  Result<std::string> exportMemory(const Region& whole) override {
    char key[kKeySize] = "";
    HMC_TRY(check(aclrtIpcMemGetExportKey(whole.ptr, whole.size, key, kKeySize, kAnyProcess),
                  "aclrtIpcMemGetExportKey"));
    return std::string(key);
  }
  void withdraw(const std::string& handle) override { (void)aclrtIpcMemClose(handle.c_str()); }
  Result<void*> importMemory(const std::string& handle) override {
    void* ptr = nullptr;
    HMC_TRY(
        check(aclrtIpcMemImportByKey(&ptr, handle.c_str(), kPeerAccess), "aclrtIpcMemImportByKey"));
    return ptr;
  }
  void close(void*, const std::string& handle) override { (void)aclrtIpcMemClose(handle.c_str()); }
  Status exportDmaBuf(const Region&, Share&) override {
    return error(Code::unsupported,
                 "AscendCL exports no dma-buf: NICs of the host do not reach device memory, stage "
                 "it on the host");
  }

  Status pin(const Region& host) override {
    const Region pages = wholePages(host);
    if (pages.size == 0) return Status();
    return check(aclrtHostRegisterV2(pages.ptr, pages.size, kHostPinned), "aclrtHostRegisterV2");
  }
  void unpin(const Region& host) override {
    const Region pages = wholePages(host);
    if (pages.size > 0) (void)aclrtHostUnregister(pages.ptr);
  }

 private:
  Status complete() {
#define HMC_ROW(name, arguments) HMC_TRY(lookUp(library_, #name, name));
    HMC_ACL_FUNCTIONS(HMC_ROW)
#undef HMC_ROW
    HMC_TRY(lookUp(library_, "aclrtGetSocName", aclrtGetSocName));
    HMC_TRY(lookUp(library_, "aclGetRecentErrMsg", aclGetRecentErrMsg));
    const int result = aclInit(nullptr);
    // torch_npu or somebody else was first.
    return result == kRepeatInitialize ? Status() : check(result, "aclInit");
  }

  Status check(int result, const char* call) const {
    if (result == kSuccess) return Status();
    const char* why = aclGetRecentErrMsg();
    return error(codeOf(result), "{}: {} (aclError {})", call, why ? why : "no message", result);
  }

  // Two devices may touch each other's memory from now on.
  Status allowPeers(int one, int other) {
    if (one == other) return Status();
    std::lock_guard lock(peersMutex_);
    for (auto [from, to] : {std::pair(one, other), std::pair(other, one)}) {
      bool& allowed = peers_[{from, to}];
      if (allowed) continue;
      UsedDevice used(*this, from);
      HMC_TRY(used.status());
      HMC_TRY(check(aclrtDeviceEnablePeerAccess(to, 0), "aclrtDeviceEnablePeerAccess"));
      allowed = true;
    }
    return Status();
  }

#define HMC_ROW(name, arguments) int(*name) arguments = nullptr;
  HMC_ACL_FUNCTIONS(HMC_ROW)
#undef HMC_ROW
  const char* (*aclrtGetSocName)() = nullptr;     // NOLINT: the vendor's name
  const char* (*aclGetRecentErrMsg)() = nullptr;  // NOLINT: the vendor's name

  const DynamicLibrary library_;
  std::mutex mutex_;
  std::map<int, void*> contexts_;              // guarded by mutex_; by device
  std::mutex peersMutex_;                      // locked before mutex_
  std::map<std::pair<int, int>, bool> peers_;  // guarded by peersMutex_
};

}  // namespace

Result<Backend*> load() {
  HMC_ASSIGN(auto runtime, AclRuntime::create());
  auto facts = runtime->facts();
  return makeBackend(std::move(facts), std::move(runtime), kFix);
}

}  // namespace hmc::acl
