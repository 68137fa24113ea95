#pragma once

#include <cstddef>
#include <cstdint>

// What we use of Ascend's AscendCL, the runtime of CANN.
//
// Held against acl/acl.h by tests/unit/memory/acl_api_test.cc, where it is installed; seen with
// that of ACL 1.17, which the wheel torch-npu 2.14.0 has in torch_npu/include. The functions are
// written from ACL 1.15 (CANN 8.5). Cited from the "AscendCL API reference" of CANN 8.5 and 9.0,
// and checked by nothing:
// - aclrtHostRegisterV2() takes whole pages of 4 KiB;
// - aclrtIpcMemGetExportKey() takes a key of 65 bytes, and both sides close it;
// - aclrtDestroyEvent() may come before the event has passed.
// Streams, events and contexts are void pointers there, too; enums are ints here.
namespace hmc::acl {

struct AclUuid {
  char bytes[16];
};
struct AclPointer {
  uint32_t device;
  int type;
  uint32_t pageSize;
  uint32_t reserved[4];
};

enum : int {
  kSuccess = 0,
  kRepeatInitialize = 100002,
  kInvalidParam = 100000,
  kParamInvalid = 107000,  // ACL_ERROR_RT_PARAM_INVALID
  kContextNull = 107002,
  kNotSupported = 207000,
  kOutOfMemory = 207001,

  kHugeFirst = 0,  // aclrtMemMallocPolicy
  kHbm = 1,        // aclrtMemAttr
  kHostToDevice = 1,
  kDeviceToHost = 2,
  kDeviceToDevice = 3,
  kEventPassed = 1,     // aclrtEventRecordedStatus
  kLocationDevice = 1,  // aclrtMemLocationType
};
constexpr uint32_t kEventSync = 0x1;
constexpr uint32_t kHostPinned = 0x10000000;
constexpr uint64_t kAnyProcess = 0x1;  // ACL_RT_IPC_MEM_EXPORT_FLAG_DISABLE_PID_VALIDATION
constexpr uint64_t kPeerAccess = 0x1;  // ACL_RT_IPC_MEM_IMPORT_FLAG_ENABLE_PEER_ACCESS
constexpr size_t kKeySize = 65;
constexpr size_t kPage = 4096;

// row(symbol in libascendcl.so, arguments)
// clang-format off
#define HMC_ACL_FUNCTIONS(row)                                                 \
  row(aclInit, (const char*))                                                  \
  row(aclrtGetVersion, (int32_t*, int32_t*, int32_t*))                         \
  row(aclrtGetDeviceCount, (uint32_t*))                                        \
  row(aclrtSetDevice, (int32_t))                                               \
  row(aclrtGetCurrentContext, (void**))                                        \
  row(aclrtSetCurrentContext, (void*))                                         \
  row(aclrtDeviceGetUuid, (int32_t, AclUuid*))                                 \
  row(aclrtGetPhyDevIdByLogicDevId, (int32_t, int32_t*))                       \
  row(aclrtDeviceEnablePeerAccess, (int32_t, uint32_t))                        \
  row(aclrtSynchronizeDevice, ())                                              \
  row(aclrtMalloc, (void**, size_t, int))                                      \
  row(aclrtFree, (void*))                                                      \
  row(aclrtGetMemInfo, (int, size_t*, size_t*))                                \
  row(aclrtMemsetAsync, (void*, size_t, int32_t, size_t, void*))               \
  row(aclrtMemcpyAsync, (void*, size_t, const void*, size_t, int, void*))      \
  row(aclrtPointerGetAttributes, (const void*, AclPointer*))                   \
  row(aclrtMemGetAddressRange, (void*, void**, size_t*))                       \
  row(aclrtHostRegisterV2, (void*, uint64_t, uint32_t))                        \
  row(aclrtHostUnregister, (void*))                                            \
  row(aclrtCreateStream, (void**))                                             \
  row(aclrtDestroyStream, (void*))                                             \
  row(aclrtStreamWaitEvent, (void*, void*))                                    \
  row(aclrtCreateEventExWithFlag, (void**, uint32_t))                          \
  row(aclrtDestroyEvent, (void*))                                              \
  row(aclrtRecordEvent, (void*, void*))                                        \
  row(aclrtQueryEventStatus, (void*, int*))                                    \
  row(aclrtIpcMemGetExportKey, (void*, size_t, char*, size_t, uint64_t))       \
  row(aclrtIpcMemImportByKey, (void**, const char*, uint64_t))                 \
  row(aclrtIpcMemClose, (const char*))
// clang-format on

}  // namespace hmc::acl
