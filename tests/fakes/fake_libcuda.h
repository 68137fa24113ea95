#pragma once

#include <dlfcn.h>

#include <cstddef>

// What tests set and read of tests/fakes/fake_libcuda*.cc, once it is loaded as libcuda.so.1.
// HMC_FAKE_DEVICES says how many devices the machine has (2), HMC_FAKE_MEMORY how many bytes each
// (8 GiB), CUDA_VISIBLE_DEVICES which of them a process sees.
namespace hmc::test {

// What this process holds of the fake.
struct FakeCudaLive {
  size_t handles = 0;   // that cuMemRelease() has not given back
  size_t ranges = 0;    // of addresses
  size_t mappings = 0;  // of memory there
  size_t bytes = 0;     // of all devices
  size_t pinned = 0;    // ranges of host memory that were registered
  friend bool operator==(const FakeCudaLive&, const FakeCudaLive&) = default;
};

// Exported besides the functions of the driver API:
//   void hmcFakeCudaFail(const char* function, int nth, int code): its nth call from now on fails;
//     0: none
//   size_t hmcFakeCudaDepth(): contexts on this thread's stack
//   void hmcFakeCudaLive(FakeCudaLive* live)
// and cuCtxCreate_v2(), cuCtxGetCurrent(), cuMemAlloc_v2(), cuMemFree_v2(), cuMemAllocManaged() and
// cuStreamSynchronize(), which other users of CUDA call. Kernels that are not ours go astray.
//
// A function of the fake; null where the real library is loaded, or none.
template <class Function>
Function* fakeCuda(const char* name) {
  void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  return library ? reinterpret_cast<Function*>(dlsym(library, name)) : nullptr;
}

}  // namespace hmc::test
