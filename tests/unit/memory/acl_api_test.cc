// Holds our prototypes of AscendCL against Huawei's header, on machines that have it.
#include <acl/acl.h>
#include <gtest/gtest.h>

#include "memory/acl/acl_api.h"
#include "unit/memory/alike.h"

namespace hmc::acl {

namespace {

#define HMC_ROW(name, arguments) \
  static_assert(AreAlike<int(*) arguments, decltype(&::name)>::value, #name);
HMC_ACL_FUNCTIONS(HMC_ROW)
#undef HMC_ROW

static_assert(sizeof(AclUuid) == sizeof(aclrtUuid));
static_assert(sizeof(AclPointer) == sizeof(aclrtPtrAttributes));
static_assert(offsetof(AclPointer, device) == offsetof(aclrtPtrAttributes, location.id));
static_assert(offsetof(AclPointer, type) == offsetof(aclrtPtrAttributes, location.type));
static_assert(offsetof(AclPointer, pageSize) == offsetof(aclrtPtrAttributes, pageSize));

struct Constant {
  uint64_t ours;
  uint64_t real;
};

}  // namespace

TEST(AclApi, hasTheConstantsOfTheHeader) {
  const Constant constants[] = {
      {kSuccess, ACL_SUCCESS},
      {kRepeatInitialize, ACL_ERROR_REPEAT_INITIALIZE},
      {kInvalidParam, ACL_ERROR_INVALID_PARAM},
      {kParamInvalid, ACL_ERROR_RT_PARAM_INVALID},
      {kContextNull, ACL_ERROR_RT_CONTEXT_NULL},
      {kNotSupported, ACL_ERROR_RT_FEATURE_NOT_SUPPORT},
      {kOutOfMemory, ACL_ERROR_RT_MEMORY_ALLOCATION},
      {kHugeFirst, ACL_MEM_MALLOC_HUGE_FIRST},
      {kHbm, ACL_HBM_MEM},
      {kHostToDevice, ACL_MEMCPY_HOST_TO_DEVICE},
      {kDeviceToHost, ACL_MEMCPY_DEVICE_TO_HOST},
      {kDeviceToDevice, ACL_MEMCPY_DEVICE_TO_DEVICE},
      {kEventPassed, ACL_EVENT_RECORDED_STATUS_COMPLETE},
      {kLocationDevice, ACL_MEM_LOCATION_TYPE_DEVICE},
      {kEventSync, ACL_EVENT_SYNC},
      {kHostPinned, ACL_HOST_REG_PINNED},
      {kAnyProcess, ACL_RT_IPC_MEM_EXPORT_FLAG_DISABLE_PID_VALIDATION},
      {kPeerAccess, ACL_RT_IPC_MEM_IMPORT_FLAG_ENABLE_PEER_ACCESS},
  };
  for (const Constant& one : constants) EXPECT_EQ(one.ours, one.real);
}

}  // namespace hmc::acl
