// Moore Threads' libmusart.so, with the one function of libmusa.so that we use. NICs do not reach
// the memory of its devices.

#define HMC_VENDOR(name) musa##name
#include "fakes/fake_cuda_shaped.h"
#include "memory/musa/musa_api.h"

namespace hmc {

FakeRuntime& fakeRuntime() {
  static auto* instance = new FakeRuntime({DeviceKind::musa, "MUSA_VISIBLE_DEVICES"});
  return *instance;
}

}  // namespace hmc

HMC_FAKE_EXPORT int musaRuntimeGetVersion(int* version) {
  *version = 40300;
  return CudaShaped::kSuccess;
}
// Host memory is nothing that it would complain about.
HMC_FAKE_EXPORT int musaPointerGetAttributes(CudaShapedPointer* known, const void* ptr) {
  auto found = fakeRuntime().locate(ptr);
  known->type = found.ok() ? musa::kMemoryTypeDevice : 0;
  known->device = found.ok() ? found->device.index : -1;
  return CudaShaped::kSuccess;
}
HMC_FAKE_EXPORT int muMemGetAddressRange_v2(unsigned long long* base, size_t* size,
                                            unsigned long long ptr) {
  auto found = fakeRuntime().locate(reinterpret_cast<void*>(ptr));  // NOLINT
  if (!found.ok()) return answer(found.status());
  *base = reinterpret_cast<unsigned long long>(found->ptr);
  *size = found->size;
  return CudaShaped::kSuccess;
}
