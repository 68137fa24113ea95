// Ascend's libascendcl.so: threads begin without a context, devices reach each other only when they
// were told to, and host memory is registered in whole pages.

#include <cstring>

#include "fakes/fake_runtime.h"
#include "memory/acl/acl_api.h"

namespace hmc {

FakeRuntime& fakeRuntime() {
  static auto* instance = new FakeRuntime({.kind = DeviceKind::acl,
                                           .visibleDevices = "ASCEND_RT_VISIBLE_DEVICES",
                                           .asksForPeers = true,
                                           .startsNowhere = true});
  return *instance;
}

namespace {

bool initialised = false;

constexpr int kInternal = 507899;  // ACL_ERROR_RT_DRV_INTERNAL_ERROR
constexpr FakeCodes kCodes = {.badArgument = acl::kParamInvalid,
                              .outOfMemory = acl::kOutOfMemory,
                              .alreadyRegistered = kInternal,
                              .unsupported = acl::kNotSupported,
                              .other = kInternal};

// A device has one context, whose address is its index and one.
void* contextOf(int index) {
  return reinterpret_cast<void*>(static_cast<uintptr_t>(index + 1));  // NOLINT
}

}  // namespace

int answer(const Status& status) {
  if (!status.ok() && fakeRuntime().current() < 0) return acl::kContextNull;
  return codeOf(status, kCodes);
}

}  // namespace hmc

using namespace hmc;  // NOLINT(google-build-using-namespace): what follows are C functions

HMC_FAKE_EXPORT int aclInit(const char*) {
  return std::exchange(initialised, true) ? acl::kRepeatInitialize : acl::kSuccess;
}
HMC_FAKE_EXPORT const char* aclGetRecentErrMsg() {
  return nullptr;
}
HMC_FAKE_EXPORT const char* aclrtGetSocName() {
  return "Ascend910 (fake)";
}
HMC_FAKE_EXPORT int aclrtGetVersion(int32_t* major, int32_t* minor, int32_t* patch) {
  *major = 1;
  *minor = 15;
  *patch = 0;
  return acl::kSuccess;
}
HMC_FAKE_EXPORT int aclrtGetDeviceCount(uint32_t* count) {
  *count = static_cast<uint32_t>(fakeRuntime().count());
  return acl::kSuccess;
}
HMC_FAKE_EXPORT int aclrtSetDevice(int32_t device) {
  return answer(fakeRuntime().use(device));
}
HMC_FAKE_EXPORT int aclrtGetCurrentContext(void** context) {
  if (fakeRuntime().current() < 0) return acl::kContextNull;
  *context = contextOf(fakeRuntime().current());
  return acl::kSuccess;
}
HMC_FAKE_EXPORT int aclrtSetCurrentContext(void* context) {
  return answer(fakeRuntime().use(static_cast<int>(reinterpret_cast<uintptr_t>(context)) - 1));
}
// As NPUs of the first generation.
HMC_FAKE_EXPORT int aclrtDeviceGetUuid(int32_t, acl::AclUuid*) {
  return acl::kNotSupported;
}
HMC_FAKE_EXPORT int aclrtGetPhyDevIdByLogicDevId(int32_t device, int32_t* physical) {
  *physical = fakeRuntime().uuid(device).bytes[15];
  return acl::kSuccess;
}
HMC_FAKE_EXPORT int aclrtDeviceEnablePeerAccess(int32_t device, uint32_t) {
  return answer(fakeRuntime().allowPeer(device));
}
HMC_FAKE_EXPORT int aclrtSynchronizeDevice() {
  return answer(fakeRuntime().synchronize());
}
HMC_FAKE_EXPORT int aclrtMalloc(void** ptr, size_t size, int) {
  return answer(fakeRuntime().allocate(size), ptr);
}
HMC_FAKE_EXPORT int aclrtFree(void* ptr) {
  return answer(fakeRuntime().release(ptr));
}
HMC_FAKE_EXPORT int aclrtGetMemInfo(int, size_t* free, size_t* total) {
  *free = fakeRuntime().free();
  *total = fakeRuntime().space();
  return acl::kSuccess;
}
HMC_FAKE_EXPORT int aclrtMemsetAsync(void* ptr, size_t, int32_t value, size_t size, void* stream) {
  if (value != 0) return acl::kNotSupported;
  return answer(fakeRuntime().zero(ptr, size, stream));
}
HMC_FAKE_EXPORT int aclrtMemcpyAsync(void* dst, size_t most, const void* src, size_t size, int kind,
                                     void* stream) {
  using Direction = FakeRuntime::Direction;
  if (size > most) return acl::kParamInvalid;
  auto to = fakeRuntime().locate(dst);
  auto from = fakeRuntime().locate(src);
  const bool peers = to.ok() && from.ok() && to->device != from->device;
  const Direction direction = kind == acl::kHostToDevice   ? Direction::toDevice
                              : kind == acl::kDeviceToHost ? Direction::toHost
                              : peers                      ? Direction::betweenDevices
                                                           : Direction::onDevice;
  return answer(fakeRuntime().copy(dst, src, size, direction, stream));
}
HMC_FAKE_EXPORT int aclrtPointerGetAttributes(const void* ptr, acl::AclPointer* known) {
  auto found = fakeRuntime().locate(ptr);
  known->type = found.ok() ? acl::kLocationDevice : 2;
  if (found.ok()) known->device = static_cast<uint32_t>(found->device.index);
  return acl::kSuccess;
}
HMC_FAKE_EXPORT int aclrtMemGetAddressRange(void* ptr, void** base, size_t* size) {
  auto found = fakeRuntime().locate(ptr);
  if (!found.ok()) return answer(found.status());
  *base = found->ptr;
  *size = found->size;
  return acl::kSuccess;
}
HMC_FAKE_EXPORT int aclrtHostRegisterV2(void* ptr, uint64_t size, uint32_t flags) {
  if ((reinterpret_cast<uintptr_t>(ptr) | size) % acl::kPage != 0) return acl::kParamInvalid;
  if (flags != acl::kHostPinned) return acl::kParamInvalid;
  return answer(fakeRuntime().pin(ptr, size));
}
HMC_FAKE_EXPORT int aclrtHostUnregister(void* ptr) {
  return answer(fakeRuntime().unpin(ptr));
}
HMC_FAKE_EXPORT int aclrtCreateStream(void** stream) {
  return answer(fakeRuntime().createStream(), stream);
}
HMC_FAKE_EXPORT int aclrtDestroyStream(void* stream) {
  return answer(fakeRuntime().destroyStream(stream));
}
HMC_FAKE_EXPORT int aclrtStreamWaitEvent(void* stream, void* event) {
  return answer(fakeRuntime().wait(stream, eventOf(event)));
}
HMC_FAKE_EXPORT int aclrtCreateEventExWithFlag(void** event, uint32_t) {
  return answer(fakeRuntime().createEvent(), event);
}
HMC_FAKE_EXPORT int aclrtDestroyEvent(void* event) {
  delete eventOf(event);
  return acl::kSuccess;
}
HMC_FAKE_EXPORT int aclrtRecordEvent(void* event, void* stream) {
  return answer(fakeRuntime().record(eventOf(event), stream));
}
HMC_FAKE_EXPORT int aclrtQueryEventStatus(void* event, int* status) {
  auto passed = eventOf(event)->event->passed();
  *status = passed.ok() && *passed ? acl::kEventPassed : 0;
  return answer(passed.status());
}
HMC_FAKE_EXPORT int aclrtIpcMemGetExportKey(void* ptr, size_t size, char* key, size_t length,
                                            uint64_t flags) {
  auto found = fakeRuntime().locate(ptr);
  if (!found.ok() || found->ptr != ptr || found->size != size || length != acl::kKeySize ||
      flags != acl::kAnyProcess) {
    return acl::kParamInvalid;
  }
  uint64_t handle = 0;
  const int code = answer(fakeRuntime().exportMemory(ptr), &handle);
  std::snprintf(key, length, "%016lx", handle);
  return code;
}
HMC_FAKE_EXPORT int aclrtIpcMemImportByKey(void** ptr, const char* key, uint64_t) {
  return answer(fakeRuntime().importMemory(std::strtoull(key, nullptr, 16)), ptr);
}
// For whoever exported it, and for whoever imported it.
HMC_FAKE_EXPORT int aclrtIpcMemClose(const char* key) {
  const uint64_t handle = std::strtoull(key, nullptr, 16);
  if (fakeRuntime().withdraw(handle).ok()) return acl::kSuccess;
  return answer(fakeRuntime().closeHandle(handle));
}
