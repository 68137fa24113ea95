#ifndef SMEM_BM_H
#define SMEM_BM_H

/*
 * Big Memory: the memory of many processes in one address space. Each rank brings a slot; slot r
 * begins r slot sizes after slot 0, at the same address in every process. Slots of the same host
 * can be read and written through a pointer where they are host memory; smem_bm_copy() reaches all.
 */

#include "smem.h"

#include "smem_bm_def.h"

#if SMEM_API_LEVEL >= 2
#include "smem_bm_v2.h"
#endif

#ifdef __cplusplus
extern "C" {
#endif

#if SMEM_API_LEVEL < 2 || defined(SMEM_BUILDING)
/* Fills in the defaults. */
SMEM_API int32_t smem_bm_config_init(smem_bm_config_t* config);

/*
 * Takes a rank of `worldSize` (1 to 65535) through the store at `storeURL`: tcp://IPv4:port, port
 * 1025 to 65535. With startConfigStore rank 0 serves the store; with autoRanking whoever can listen
 * at the address does, if nobody serves it yet. `deviceId` is ignored on a machine without
 * accelerators. Calling it again returns 0 and changes nothing, until smem_bm_uninit().
 */
SMEM_API int32_t smem_bm_init(const char* storeURL, uint32_t worldSize, uint16_t deviceId,
                              const smem_bm_config_t* config);
#endif
/* Destroys all pools and gives the rank back. No flags exist. */
SMEM_API void smem_bm_uninit(uint32_t flags);
/* UINT32_MAX before smem_bm_init(). */
SMEM_API uint32_t smem_bm_get_rank_id(void);

/*
 * Memory of this process for pool `id`: `localDRAMSize` bytes of the host, `localHBMSize` of the
 * device (of the host where there is no device); one may be 0. A size that is no multiple of 2 MiB
 * is rounded up. Returns NULL on failure. `memberSize`, `dataOpType` and `flags` are ignored.
 */
SMEM_API smem_bm_t smem_bm_create(uint32_t id, uint32_t memberSize, smem_bm_data_op_type dataOpType,
                                  uint64_t localDRAMSize, uint64_t localHBMSize, uint32_t flags);
/* Leaves first if need be. */
SMEM_API void smem_bm_destroy(smem_bm_t handle);

#if SMEM_API_LEVEL < 2 || defined(SMEM_BUILDING)
/*
 * From now on other ranks reach our slot and we theirs. Nobody else has to do anything for it.
 * `localGvaAddress` receives the address of our slot. Ok when we are in already.
 */
SMEM_API int32_t smem_bm_join(smem_bm_t handle, uint32_t flags, void** localGvaAddress);
#endif
/* Returns when no rank reaches our slot any more. SMEM_NOT_STARTED without smem_bm_join(). */
SMEM_API int32_t smem_bm_leave(smem_bm_t handle, uint32_t flags);

/* Of our device slot, or host slot where there is none; as it was rounded up. 0 on failure. */
SMEM_API uint64_t smem_bm_get_local_mem_size(smem_bm_t handle);
/*
 * Where that rank's slot begins, whether it has joined or not: its device slot, or host slot where
 * the pool has no device slots. NULL on failure.
 */
SMEM_API void* smem_bm_ptr(smem_bm_t handle, uint16_t peerRankId);

#if SMEM_API_LEVEL < 2 || defined(SMEM_BUILDING)
/* Returns when the bytes are in place. What `t` says must be true of the addresses. */
SMEM_API int32_t smem_bm_copy(smem_bm_t handle, const void* src, void* dest, uint64_t size,
                              smem_bm_copy_type t, uint32_t flags);
#endif
/* `height` rows of `width` bytes that begin `spitch` and `dpitch` bytes apart. */
SMEM_API int32_t smem_bm_copy_2d(smem_bm_t handle, const void* src, uint64_t spitch, void* dest,
                                 uint64_t dpitch, uint64_t width, uint64_t height,
                                 smem_bm_copy_type t, uint32_t flags);

#ifdef __cplusplus
}
#endif

#endif
