#ifndef SMEM_SHM_CONTEXT_H
#define SMEM_SHM_CONTEXT_H

/* What kernels, or host code, need to use an object: see smem/device/smem_shm_device.h. */

#include "smem.h"
#include "smem_shm_def.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * An object as its device side sees it. Copy it as you like, also to a kernel: the memory that it
 * points to is reached by kernels of this process, until the object is destroyed.
 */
typedef struct {
  uint32_t id;
  uint32_t rank;
  uint32_t rankSize;
  int32_t device; /* the accelerator that the slots are memory of; -1: they are host memory */
  uint64_t symmetricSize;
  void* base;                       /* of slot 0 */
  const void* extraContext;         /* as smem_shm_set_extra_context() set it last */
  const uint32_t* extraContextSize; /* 0 while there is none */
  void* sync;                       /* words of barriers; NULL: some ranks are on other hosts */
  uint64_t syncStride;              /* from one rank's words to the next one's */
  const uint8_t* reach;             /* by rank: 0 where the slot is not mapped; NULL: all are */
} smem_shm_device_context_t;

/*
 * `contextSize` is sizeof(smem_shm_device_context_t). Registers some pages with the driver where
 * the slots are memory of an accelerator, the first time for each object.
 */
SMEM_API int32_t smem_shm_get_device_context(smem_shm_t handle, smem_shm_device_context_t* context,
                                             uint32_t contextSize);

#ifdef __cplusplus
}
#endif

#endif
