#pragma once

#include <cstddef>

// What we use of Cambricon's CNRT. Its headers come with Neuware only, and no package index has
// them, so no test checks this.
//
// Cited from copies of cnrt.h in public repositories, compared by eye:
// - names, arguments, error numbers and structs: CNRT 6.0.2 (CNToolkit 3.0);
// - error numbers, directions, kinds of memory, the pointer's struct, the IPC handle and
//   cnrtMemcpy...Async(): the same in 6.14.1.
// Not cited, from memory or assumed:
// - 6.14.1 renames cnrtGetDeviceProperties() to ..._V3 by a macro. The library is assumed to keep
//   the old one, for programs that were compiled before;
// - cnrtHostRegister() and cnrtHostUnregister() are named in 6.0.2 (cnrtAttrSupportHostRegsiter)
//   and their declarations were not found: assumed to have the arguments of CUDA's. A library
//   without them pins nothing;
// - that an MLU370 registers 256 MiB for a process at most is from HUX's support matrix.
//   Host memory is assumed to count.
// Queues and notifiers are pointers to structs that nobody looks into, enums are ints.
namespace hmc::cnrt {

struct CnrtPointer {
  int type;
  int device;
  size_t size;
  void* devicePointer;
  void* hostPointer;
  int cacheMode;
  void* deviceBasePointer;
  char more[64];  // members of newer versions
};
struct CnrtProperties {
  char name[256];
  char more[256];
};

enum : int {
  kSuccess = 0,
  kNotReady = 1,
  kNoDevice = 100004,
  kDeviceInvalid = 100005,
  kArgsInvalid = 100006,
  kHostOutOfMemory = 100010,
  kNotSupported = 100050,
  kOutOfMemory = 100100,
  kBusy = 632014,  // what older versions say for kNotReady

  kHostToDevice = 0,
  kDeviceToDevice = 1,
  kDeviceToHost = 2,
  kMemoryTypeDevice = 2,
  kNotifierDisableTiming = 2,
};
constexpr size_t kPinLimit = size_t{256} << 20;

// row(symbol in libcnrt.so, arguments)
// clang-format off
#define HMC_CNRT_FUNCTIONS(row)                                       \
  row(cnrtGetLibVersion, (int*, int*, int*))                          \
  row(cnrtGetDeviceCount, (unsigned*))                                \
  row(cnrtGetDeviceProperties, (CnrtProperties*, int))                \
  row(cnrtDeviceGetPCIBusId, (char*, int, int))                       \
  row(cnrtGetDevice, (int*))                                          \
  row(cnrtSetDevice, (int))                                           \
  row(cnrtSyncDevice, ())                                             \
  row(cnrtGetLastError, ())                                           \
  row(cnrtMalloc, (void**, size_t))                                   \
  row(cnrtFree, (void*))                                              \
  row(cnrtMemGetInfo, (size_t*, size_t*))                             \
  row(cnrtMemsetAsync, (void*, int, size_t, void*))                   \
  row(cnrtMemcpyAsync, (void*, void*, size_t, void*, int))            \
  row(cnrtMemcpyPeerAsync, (void*, int, void*, int, size_t, void*))   \
  row(cnrtPointerGetAttributes, (CnrtPointer*, const void*))          \
  row(cnrtQueueCreate, (void**))                                      \
  row(cnrtQueueDestroy, (void*))                                      \
  row(cnrtQueueWaitNotifier, (void*, void*, unsigned))                \
  row(cnrtNotifierCreateWithFlags, (void**, unsigned))                \
  row(cnrtNotifierDestroy, (void*))                                   \
  row(cnrtPlaceNotifier, (void*, void*))                              \
  row(cnrtQueryNotifier, (void*))                                     \
  row(cnrtAcquireMemHandle, (void**, void*))                          \
  row(cnrtMapMemHandle, (void**, void*, int))                         \
  row(cnrtUnMapMemHandle, (void*))
// clang-format on

using HostRegister = int(void* ptr, size_t size, unsigned flags);
using HostUnregister = int(void* ptr);

}  // namespace hmc::cnrt
