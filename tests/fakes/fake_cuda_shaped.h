#pragma once

// The functions that HIP and MUSA took over from CUDA's runtime API, over a FakeRuntime. Included
// by a file that has defined HMC_VENDOR(Malloc) to be that vendor's name for it.

#include <cstring>

#include "fakes/fake_runtime.h"
#include "memory/cuda_shaped_runtime.h"

namespace hmc {

namespace {

thread_local int lastCode = CudaShaped::kSuccess;

constexpr FakeCodes kCodes = {.badArgument = CudaShaped::kInvalidValue,
                              .outOfMemory = CudaShaped::kOutOfMemory,
                              .alreadyRegistered = CudaShaped::kAlreadyRegistered,
                              .unsupported = CudaShaped::kNotSupported,
                              .other = 719};  // launch failure

}  // namespace

int answer(const Status& status) {
  const int code = codeOf(status, kCodes);
  if (code != CudaShaped::kSuccess) lastCode = code;
  return code;
}

}  // namespace hmc

using namespace hmc;  // NOLINT(google-build-using-namespace): what follows are C functions

HMC_FAKE_EXPORT const char* HMC_VENDOR(GetErrorName)(int code) {
  if (code == CudaShaped::kNoDevice) return "ErrorNoDevice";
  return code == CudaShaped::kOutOfMemory ? "ErrorOutOfMemory" : "ErrorOfTheFake";
}
HMC_FAKE_EXPORT const char* HMC_VENDOR(GetErrorString)(int code) {
  if (code == CudaShaped::kNoDevice) return "no device is detected";
  return code == CudaShaped::kOutOfMemory ? "out of memory" : "the fake refused";
}
HMC_FAKE_EXPORT int HMC_VENDOR(GetLastError)() {
  return std::exchange(lastCode, CudaShaped::kSuccess);
}
HMC_FAKE_EXPORT int HMC_VENDOR(GetDeviceCount)(int* count) {
  *count = fakeRuntime().count();
  return *count > 0 ? CudaShaped::kSuccess : CudaShaped::kNoDevice;
}
HMC_FAKE_EXPORT int HMC_VENDOR(GetDevice)(int* device) {
  *device = fakeRuntime().current();
  return CudaShaped::kSuccess;
}
HMC_FAKE_EXPORT int HMC_VENDOR(SetDevice)(int device) {
  return answer(fakeRuntime().use(device));
}
HMC_FAKE_EXPORT int HMC_VENDOR(DeviceGetPCIBusId)(char* text, int size, int device) {
  std::strncpy(text, fakeRuntime().pciAddress(device).c_str(), static_cast<size_t>(size));
  return CudaShaped::kSuccess;
}
HMC_FAKE_EXPORT int HMC_VENDOR(DeviceSynchronize)() {
  return answer(fakeRuntime().synchronize());
}
HMC_FAKE_EXPORT int HMC_VENDOR(Malloc)(void** ptr, size_t size) {
  return answer(fakeRuntime().allocate(size), ptr);
}
HMC_FAKE_EXPORT int HMC_VENDOR(Free)(void* ptr) {
  return answer(fakeRuntime().release(ptr));
}
HMC_FAKE_EXPORT int HMC_VENDOR(MemGetInfo)(size_t* free, size_t* total) {
  *free = fakeRuntime().free();
  *total = fakeRuntime().space();
  return CudaShaped::kSuccess;
}
HMC_FAKE_EXPORT int HMC_VENDOR(MemsetAsync)(void* ptr, int value, size_t size, void* stream) {
  if (value != 0) return CudaShaped::kNotSupported;
  return answer(fakeRuntime().zero(ptr, size, stream));
}
HMC_FAKE_EXPORT int HMC_VENDOR(MemcpyAsync)(void* dst, const void* src, size_t size, int kind,
                                            void* stream) {
  const auto direction = kind == CudaShaped::kHostToDevice   ? FakeRuntime::Direction::toDevice
                         : kind == CudaShaped::kDeviceToHost ? FakeRuntime::Direction::toHost
                                                             : FakeRuntime::Direction::onDevice;
  return answer(fakeRuntime().copy(dst, src, size, direction, stream));
}
HMC_FAKE_EXPORT int HMC_VENDOR(MemcpyPeerAsync)(void* dst, int to, const void* src, int from,
                                                size_t size, void* stream) {
  if (fakeRuntime().locate(dst)->device.index != to) return CudaShaped::kInvalidValue;
  if (fakeRuntime().locate(src)->device.index != from) return CudaShaped::kInvalidValue;
  return answer(fakeRuntime().copy(dst, src, size, FakeRuntime::Direction::betweenDevices, stream));
}
HMC_FAKE_EXPORT int HMC_VENDOR(HostRegister)(void* ptr, size_t size, unsigned flags) {
  if (flags != (CudaShaped::kHostPortable | CudaShaped::kHostMapped)) {
    return CudaShaped::kInvalidValue;
  }
  return answer(fakeRuntime().pin(ptr, size));
}
HMC_FAKE_EXPORT int HMC_VENDOR(HostUnregister)(void* ptr) {
  return answer(fakeRuntime().unpin(ptr));
}
HMC_FAKE_EXPORT int HMC_VENDOR(StreamCreateWithFlags)(void** stream, unsigned) {
  return answer(fakeRuntime().createStream(), stream);
}
HMC_FAKE_EXPORT int HMC_VENDOR(StreamDestroy)(void* stream) {
  return answer(fakeRuntime().destroyStream(stream));
}
HMC_FAKE_EXPORT int HMC_VENDOR(StreamWaitEvent)(void* stream, void* event, unsigned) {
  return answer(fakeRuntime().wait(stream, eventOf(event)));
}
HMC_FAKE_EXPORT int HMC_VENDOR(EventCreateWithFlags)(void** event, unsigned) {
  return answer(fakeRuntime().createEvent(), event);
}
HMC_FAKE_EXPORT int HMC_VENDOR(EventDestroy)(void* event) {
  delete eventOf(event);
  return CudaShaped::kSuccess;
}
HMC_FAKE_EXPORT int HMC_VENDOR(EventRecord)(void* event, void* stream) {
  return answer(fakeRuntime().record(eventOf(event), stream));
}
HMC_FAKE_EXPORT int HMC_VENDOR(EventQuery)(void* event) {
  auto passed = eventOf(event)->event->passed();
  if (passed.ok() && !*passed) return lastCode = CudaShaped::kNotReady;
  return answer(passed.status());
}
HMC_FAKE_EXPORT int HMC_VENDOR(IpcGetMemHandle)(CudaShapedHandle* handle, void* ptr) {
  uint64_t made = 0;
  const int code = answer(fakeRuntime().exportMemory(ptr), &made);
  std::memcpy(handle->bytes, &made, sizeof(made));
  return code;
}
HMC_FAKE_EXPORT int HMC_VENDOR(IpcOpenMemHandle)(void** ptr, CudaShapedHandle handle, unsigned) {
  uint64_t wanted = 0;
  std::memcpy(&wanted, handle.bytes, sizeof(wanted));
  return answer(fakeRuntime().importMemory(wanted), ptr);
}
HMC_FAKE_EXPORT int HMC_VENDOR(IpcCloseMemHandle)(void* ptr) {
  return answer(fakeRuntime().close(ptr));
}
