// AMD's libhsa-runtime64.so.1, whose one function that we use is done by the fake libamdhip64.so.6.

#include <dlfcn.h>

#include "fakes/fake_runtime.h"
#include "memory/hip/hip_api.h"

HMC_FAKE_EXPORT int hsa_amd_portable_export_dmabuf(const void* ptr, size_t size, int* fd,
                                                   uint64_t* offset) {
  void* hip = dlopen("libamdhip64.so.6", RTLD_NOW | RTLD_NOLOAD);
  auto* call = reinterpret_cast<hmc::hip::ExportDmaBuf*>(dlsym(hip, "hmcFakeExportDmaBuf"));
  return call(ptr, size, fd, offset);
}
