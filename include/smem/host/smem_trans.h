#ifndef SMEM_TRANS_H
#define SMEM_TRANS_H

/*
 * Transfers between registered memory of two processes, by address. An engine has an id by which
 * others find it through a store; it registers memory, and they read and write that memory at the
 * addresses that it has in its process. Of the later interface; needs no SMEM_API_LEVEL.
 *
 * Memory that others reach must be registered there. What this process reads and writes of its own
 * need not be, but is quicker if it is. Both may lie on a device.
 */

#include "smem.h"

#include "smem_trans_def.h"
#include "smem_v2.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Fills in the defaults. */
SMEM_API int32_t smem_trans_config_init(smem_trans_config_t* config);

/* Does what smem_init() does, if that was not done. May be repeated. */
SMEM_API int32_t smem_trans_init(const smem_trans_config_t* config);
/* Destroys all engines. No flags exist. */
SMEM_API void smem_trans_uninit(uint32_t flags);

/*
 * An engine that others find as `uniqueId` through the store at `storeUrl` (tcp://IPv4:port, see
 * smem_create_config_store()). An id has 1 to 255 printable characters without spaces and slashes,
 * usually "ip:port"; no other living engine has it. A process may have several engines. Returns
 * NULL on failure.
 */
SMEM_API smem_trans_t smem_trans_create(const char* storeUrl, const char* uniqueId,
                                        const smem_trans_config_t* config);
/* Takes all memory back, and frees what smem_trans_malloc() gave. */
SMEM_API void smem_trans_destroy(smem_trans_t handle, uint32_t flags);

/* Memory that is registered, and that processes of this host map. NULL on failure. */
SMEM_API void* smem_trans_malloc(smem_trans_t handle, size_t size);
SMEM_API int32_t smem_trans_free(smem_trans_t handle, void* address);

/*
 * From now on other engines reach exactly these bytes. Doing it again with the same size changes
 * nothing; with another size it is SMEM_DUPLICATED_OBJECT. No flags exist.
 */
SMEM_API int32_t smem_trans_register_mem(smem_trans_t handle, void* address, size_t capacity,
                                         uint32_t flags);
/* All of them or, on failure, none. */
SMEM_API int32_t smem_trans_batch_register_mem(smem_trans_t handle, void* addresses[],
                                               size_t capacities[], uint32_t count, uint32_t flags);
/*
 * When it returns, no engine reads or writes that memory any more. SMEM_TIMEOUT: one did not
 * confirm it and was disconnected.
 */
SMEM_API int32_t smem_trans_deregister_mem(smem_trans_t handle, void* address);

/*
 * Copy between memory here and registered memory of the engine `remoteUniqueId`; return when the
 * bytes are in place. `remoteAddr` is an address of that process. COPY_EXTEND_FLAG is ignored.
 */
SMEM_API int32_t smem_trans_write(smem_trans_t handle, const void* localAddr,
                                  const char* remoteUniqueId, void* remoteAddr, size_t dataSize,
                                  uint32_t flags);
SMEM_API int32_t smem_trans_read(smem_trans_t handle, void* localAddr, const char* remoteUniqueId,
                                 const void* remoteAddr, size_t dataSize, uint32_t flags);
/* In any order. On failure others may have been made. */
SMEM_API int32_t smem_trans_batch_write(smem_trans_t handle, const void* localAddrs[],
                                        const char* remoteUniqueId, void* remoteAddrs[],
                                        size_t dataSizes[], uint32_t batchSize, uint32_t flags);
SMEM_API int32_t smem_trans_batch_read(smem_trans_t handle, void* localAddrs[],
                                       const char* remoteUniqueId, const void* remoteAddrs[],
                                       size_t dataSizes[], uint32_t batchSize, uint32_t flags);

/*
 * The same in the order of a stream of the device that local memory lies on (cudaStream_t; NULL is
 * CUDA's default stream): they touch it after what was enqueued before, and what is enqueued
 * afterwards runs when they have ended. Local memory of the host is copied before they return; what
 * a stream does with it must be over by then. A failure that shows after the return is logged.
 */
SMEM_API int32_t smem_trans_write_submit(smem_trans_t handle, const void* localAddr,
                                         const char* remoteUniqueId, void* remoteAddr,
                                         size_t dataSize, void* stream, uint32_t flags);
SMEM_API int32_t smem_trans_read_submit(smem_trans_t handle, void* localAddr,
                                        const char* remoteUniqueId, const void* remoteAddr,
                                        size_t dataSize, void* stream, uint32_t flags);
SMEM_API int32_t smem_trans_batch_write_submit(smem_trans_t handle, const void* localAddrs[],
                                               const char* remoteUniqueId, void* remoteAddrs[],
                                               size_t dataSizes[], uint32_t batchSize, void* stream,
                                               uint32_t flags);
SMEM_API int32_t smem_trans_batch_read_submit(smem_trans_t handle, void* localAddrs[],
                                              const char* remoteUniqueId, const void* remoteAddrs[],
                                              size_t dataSizes[], uint32_t batchSize, void* stream,
                                              uint32_t flags);

#ifdef __cplusplus
}
#endif

#endif
