// AMD's libamdhip64.so.6, and Hygon's libgalaxyhip.so.5, which has no dma-buf.

#define HMC_VENDOR(name) hip##name
#include "fakes/fake_cuda_shaped.h"
#include "memory/hip/hip_api.h"

namespace hmc {

FakeRuntime& fakeRuntime() {
  FakeRuntime::Options options{DeviceKind::hip, "HIP_VISIBLE_DEVICES"};
#ifdef HMC_FAKE_DEVICELESS
  options.deviceless = true;
#endif
  static auto* instance = new FakeRuntime(options);
  return *instance;
}

}  // namespace hmc

HMC_FAKE_EXPORT int hipRuntimeGetVersion(int* version) {
  *version = HMC_FAKE_HIP_VERSION;
  return CudaShaped::kSuccess;
}
HMC_FAKE_EXPORT int hipDeviceGetName(char* text, int size, int) {
  std::strncpy(text, "fake GPU of AMD", static_cast<size_t>(size));
  return CudaShaped::kSuccess;
}
HMC_FAKE_EXPORT int hipDeviceGetUuid(hip::HipUuid* uuid, int device) {
  std::memcpy(uuid->bytes, fakeRuntime().uuid(device).bytes.data(), sizeof(uuid->bytes));
  return CudaShaped::kSuccess;
}
HMC_FAKE_EXPORT int hipPointerGetAttributes(CudaShapedPointer* known, const void* ptr) {
  auto found = fakeRuntime().locate(ptr);
  if (!found.ok()) return answer(found.status());
  known->type =
      HMC_FAKE_HIP_VERSION < hip::kRocm6 ? hip::kMemoryTypeDevice5 : hip::kMemoryTypeDevice6;
  known->device = found->device.index;
  return CudaShaped::kSuccess;
}
HMC_FAKE_EXPORT int hipMemGetAddressRange(void** base, size_t* size, void* ptr) {
  auto found = fakeRuntime().locate(ptr);
  if (!found.ok()) return answer(found.status());
  *base = found->ptr;
  *size = found->size;
  return CudaShaped::kSuccess;
}
// For the fake libhsa-runtime64.so.1.
HMC_FAKE_EXPORT int hmcFakeExportDmaBuf(const void* ptr, size_t size, int* fd, uint64_t* offset) {
  auto share = fakeRuntime().exportDmaBuf(ptr, size);
  if (!share.ok()) return 1;
  *fd = share->fds[0].release();
  *offset = share->offset;
  return hip::kHsaSuccess;
}
