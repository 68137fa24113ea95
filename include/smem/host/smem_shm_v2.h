#ifndef SMEM_SHM_V2_H
#define SMEM_SHM_V2_H

/* What SMEM_API_LEVEL 2 adds to smem_shm.h, which includes this. */

#include "smem_shm_context.h"
#include "smem_shm_def.h"
#include "smem_v2.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Among `rankSize` ranks of the object, which number themselves 0 to rankSize - 1 in `rankId`.
 * `key` has 1 to 63 characters, the same at all of them and no other group's.
 */
SMEM_API int32_t smem_shm_subgroup_barrier(smem_shm_t handle, const char* key, uint32_t rankSize,
                                           uint32_t rankId);
SMEM_API int32_t smem_shm_subgroup_allgather(smem_shm_t handle, const char* key, uint32_t rankSize,
                                             uint32_t rankId, const char* sendBuf,
                                             uint32_t sendSize, char* recvBuf, uint32_t recvSize);

/* The lowest number below `limit` (1 to SMEM_SHM_ATOMIC_NUM_LIMIT) that no rank has. */
SMEM_API int32_t smem_shm_atomic_alloc_value(smem_shm_t handle, uint32_t limit, uint32_t* retVal);
SMEM_API int32_t smem_shm_atomic_release_value(smem_shm_t handle, int32_t value);

/*
 * `onExit` is called with the status when any rank calls smem_shm_global_exit(), on a thread of
 * ours. It may end the process, or call any function of this library.
 */
SMEM_API int32_t smem_shm_register_exit(smem_shm_t handle, void (*onExit)(int));
SMEM_API void smem_shm_global_exit(smem_shm_t handle, int status);

#ifdef __cplusplus
}
#endif

#endif
