#ifndef SMEM_SHM_H
#define SMEM_SHM_H

/*
 * Share Memory: the same size of memory at every one of a fixed number of ranks, with a barrier and
 * an allgather. Slot r begins r sizes after slot 0, at the same address in every process.
 */

#include "smem.h"

#include "smem_shm_def.h"

#if SMEM_API_LEVEL >= 2
#include "smem_shm_v2.h"
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Fills in the defaults. */
SMEM_API int32_t smem_shm_config_init(smem_shm_config_t* config);

/*
 * Opens the store at `configStoreIpPort` (tcp://IPv4:port, port 1025 to 65535); with
 * startConfigStore rank 0 serves it, unless this process or another does already. May name the
 * store of smem_bm_init(). `deviceId` is ignored on a machine without accelerators. Calling it
 * again returns 0 and changes nothing, until smem_shm_uninit().
 */
SMEM_API int32_t smem_shm_init(const char* configStoreIpPort, uint32_t worldSize, uint32_t rankId,
                               uint16_t deviceId, smem_shm_config_t* config);
/* Destroys all objects. No flags exist. */
SMEM_API void smem_shm_uninit(uint32_t flags);
/* SMEMS_DATA_OP_ bits: what ranks of one host have. */
SMEM_API uint32_t smem_shm_query_support_data_operation(void);

/*
 * Called by all of `rankSize` ranks; returns when all have. `symmetricSize` bytes of device memory
 * at each (host memory where there is no device), rounded up to 2 MiB. `gva` receives where slot 0
 * begins. Returns NULL on failure. `dataOpType` and `flags` are ignored.
 */
SMEM_API smem_shm_t smem_shm_create(uint32_t id, uint32_t rankSize, uint32_t rankId,
                                    uint64_t symmetricSize, smem_shm_data_op_type dataOpType,
                                    uint32_t flags, void** gva);
/*
 * Waits for no other rank. Others keep what they have; what was our slot is lost to them. When all
 * have destroyed it, the id may be used for another size.
 */
SMEM_API int32_t smem_shm_destroy(smem_shm_t handle, uint32_t flags);

/* 1 to 65536 bytes for the device side of this process, copied. Replaces what was set before. */
SMEM_API int32_t smem_shm_set_extra_context(smem_shm_t handle, const void* context, uint32_t size);
/* UINT32_MAX on failure, both. */
SMEM_API uint32_t smem_shm_get_global_rank(smem_shm_t handle);
SMEM_API uint32_t smem_shm_get_global_rank_size(smem_shm_t handle);

/* Returns when all ranks have called it. Ranks call barriers and allgathers in the same order. */
SMEM_API int32_t smem_shm_control_barrier(smem_shm_t handle);
/*
 * Gives everyone the `sendSize` (1 to 65536) bytes of all, by rank. `recvSize` is sendSize x
 * rankSize.
 */
SMEM_API int32_t smem_shm_control_allgather(smem_shm_t handle, const char* sendBuf,
                                            uint32_t sendSize, char* recvBuf, uint32_t recvSize);
/* SMEMS_DATA_OP_ bits: how that rank's slot is reached from here. */
SMEM_API int32_t smem_shm_topology_can_reach(smem_shm_t handle, uint32_t remoteRank,
                                             uint32_t* reachInfo);

#ifdef __cplusplus
}
#endif

#endif
