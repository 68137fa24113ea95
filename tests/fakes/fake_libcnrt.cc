// Cambricon's libcnrt.so. A process registers 256 MiB of host memory, and not more.

#include <cstring>

#include "fakes/fake_runtime.h"
#include "memory/cnrt/cnrt_api.h"

namespace hmc {

FakeRuntime& fakeRuntime() {
  static auto* instance =
      new FakeRuntime({DeviceKind::cnrt, "MLU_VISIBLE_DEVICES", cnrt::kPinLimit});
  return *instance;
}

namespace {

thread_local int lastCode = cnrt::kSuccess;

constexpr int kDriverCall = 632015;  // cnrtErrorCndrvFuncCall
constexpr FakeCodes kCodes = {.badArgument = cnrt::kArgsInvalid,
                              .outOfMemory = cnrt::kOutOfMemory,
                              .alreadyRegistered = kDriverCall,
                              .unsupported = kDriverCall,
                              .other = kDriverCall};

}  // namespace

int answer(const Status& status) {
  const int code = codeOf(status, kCodes);
  if (code != cnrt::kSuccess) lastCode = code;
  return code;
}

}  // namespace hmc

using namespace hmc;  // NOLINT(google-build-using-namespace): what follows are C functions

HMC_FAKE_EXPORT const char* cnrtGetErrorName(int) {
  return "cnrtErrorOfTheFake";
}
HMC_FAKE_EXPORT const char* cnrtGetErrorStr(int) {
  return "the fake refused";
}
HMC_FAKE_EXPORT int cnrtGetLastError() {
  return std::exchange(lastCode, cnrt::kSuccess);
}
HMC_FAKE_EXPORT int cnrtGetLibVersion(int* major, int* minor, int* patch) {
  *major = 6;
  *minor = 0;
  *patch = 2;
  return cnrt::kSuccess;
}
HMC_FAKE_EXPORT int cnrtGetDeviceCount(unsigned* count) {
  *count = static_cast<unsigned>(fakeRuntime().count());
  return *count > 0 ? cnrt::kSuccess : cnrt::kNoDevice;
}
HMC_FAKE_EXPORT int cnrtGetDeviceProperties(cnrt::CnrtProperties* properties, int) {
  std::strcpy(properties->name, "fake MLU");
  return cnrt::kSuccess;
}
HMC_FAKE_EXPORT int cnrtDeviceGetPCIBusId(char* text, int size, int device) {
  std::strncpy(text, fakeRuntime().pciAddress(device).c_str(), static_cast<size_t>(size));
  return cnrt::kSuccess;
}
HMC_FAKE_EXPORT int cnrtGetDevice(int* device) {
  *device = fakeRuntime().current();
  return cnrt::kSuccess;
}
HMC_FAKE_EXPORT int cnrtSetDevice(int device) {
  return answer(fakeRuntime().use(device));
}
HMC_FAKE_EXPORT int cnrtSyncDevice() {
  return answer(fakeRuntime().synchronize());
}
HMC_FAKE_EXPORT int cnrtMalloc(void** ptr, size_t size) {
  return answer(fakeRuntime().allocate(size), ptr);
}
HMC_FAKE_EXPORT int cnrtFree(void* ptr) {
  return answer(fakeRuntime().release(ptr));
}
HMC_FAKE_EXPORT int cnrtMemGetInfo(size_t* free, size_t* total) {
  *free = fakeRuntime().free();
  *total = fakeRuntime().space();
  return cnrt::kSuccess;
}
HMC_FAKE_EXPORT int cnrtMemsetAsync(void* ptr, int value, size_t size, void* queue) {
  if (value != 0) return cnrt::kNotSupported;
  return answer(fakeRuntime().zero(ptr, size, queue));
}
HMC_FAKE_EXPORT int cnrtMemcpyAsync(void* dst, void* src, size_t size, void* queue, int kind) {
  using Direction = FakeRuntime::Direction;
  const Direction direction = kind == cnrt::kHostToDevice   ? Direction::toDevice
                              : kind == cnrt::kDeviceToHost ? Direction::toHost
                                                            : Direction::onDevice;
  return answer(fakeRuntime().copy(dst, src, size, direction, queue));
}
HMC_FAKE_EXPORT int cnrtMemcpyPeerAsync(void* dst, int to, void* src, int from, size_t size,
                                        void* queue) {
  auto target = fakeRuntime().locate(dst);
  auto source = fakeRuntime().locate(src);
  if (!target.ok() || !source.ok() || target->device.index != to || source->device.index != from) {
    return cnrt::kArgsInvalid;
  }
  return answer(fakeRuntime().copy(dst, src, size, FakeRuntime::Direction::betweenDevices, queue));
}
HMC_FAKE_EXPORT int cnrtPointerGetAttributes(cnrt::CnrtPointer* known, const void* ptr) {
  auto found = fakeRuntime().locate(ptr);
  known->type = found.ok() ? cnrt::kMemoryTypeDevice : 0;
  if (!found.ok()) return cnrt::kSuccess;
  known->device = found->device.index;
  known->size = found->size;
  known->deviceBasePointer = found->ptr;
  return cnrt::kSuccess;
}
HMC_FAKE_EXPORT int cnrtHostRegister(void* ptr, size_t size, unsigned) {
  return answer(fakeRuntime().pin(ptr, size));
}
HMC_FAKE_EXPORT int cnrtHostUnregister(void* ptr) {
  return answer(fakeRuntime().unpin(ptr));
}
HMC_FAKE_EXPORT int cnrtQueueCreate(void** queue) {
  return answer(fakeRuntime().createStream(), queue);
}
HMC_FAKE_EXPORT int cnrtQueueDestroy(void* queue) {
  return answer(fakeRuntime().destroyStream(queue));
}
HMC_FAKE_EXPORT int cnrtQueueWaitNotifier(void* notifier, void* queue, unsigned) {
  return answer(fakeRuntime().wait(queue, eventOf(notifier)));
}
HMC_FAKE_EXPORT int cnrtNotifierCreateWithFlags(void** notifier, unsigned) {
  return answer(fakeRuntime().createEvent(), notifier);
}
HMC_FAKE_EXPORT int cnrtNotifierDestroy(void* notifier) {
  delete eventOf(notifier);
  return cnrt::kSuccess;
}
HMC_FAKE_EXPORT int cnrtPlaceNotifier(void* notifier, void* queue) {
  return answer(fakeRuntime().record(eventOf(notifier), queue));
}
HMC_FAKE_EXPORT int cnrtQueryNotifier(void* notifier) {
  auto passed = eventOf(notifier)->event->passed();
  if (passed.ok() && !*passed) return lastCode = cnrt::kBusy;
  return answer(passed.status());
}
HMC_FAKE_EXPORT int cnrtAcquireMemHandle(void** handle, void* ptr) {
  uint64_t made = 0;
  const int code = answer(fakeRuntime().exportMemory(ptr), &made);
  *handle = reinterpret_cast<void*>(made);  // NOLINT
  return code;
}
HMC_FAKE_EXPORT int cnrtMapMemHandle(void** ptr, void* handle, int) {
  return answer(fakeRuntime().importMemory(reinterpret_cast<uintptr_t>(handle)), ptr);
}
HMC_FAKE_EXPORT int cnrtUnMapMemHandle(void* ptr) {
  return answer(fakeRuntime().close(ptr));
}
