#ifndef SMEM_BM_V2_H
#define SMEM_BM_V2_H

/*
 * What SMEM_API_LEVEL 2 adds to smem_bm.h, which includes this. Functions and types that level 1
 * has in another form end in _v2 in the library; macros give them their usual names.
 */

#include "smem_bm_def.h"
#include "smem_v2.h"

#define SMEM_TLS_PATH_SIZE 256
#define SMEM_BM_BIND_NUMA_FLAG_INDEX 0
#define SMEM_BM_BIND_NUMA_FLAG_LEN 7
#define SMEM_BM_PERFORMANCE_MODE_FLAG_INDEX 7
#define SMEM_BM_PERFORMANCE_MODE_FLAG_LEN 1
#define SMEM_BM_FLAG_CREATE_WITH_SHM (1U << 8)

#ifdef __cplusplus
extern "C" {
#endif

/* Which slot: device or host, our own or any rank's. */
typedef enum {
  SMEM_MEM_TYPE_LOCAL_DEVICE = 0,
  SMEM_MEM_TYPE_LOCAL_HOST,
  SMEM_MEM_TYPE_DEVICE,
  SMEM_MEM_TYPE_HOST,
  SMEM_MEM_TYPE_BUTT
} smem_bm_mem_type;

typedef struct {
  bool tlsEnable; /* TLS 1.3; both sides show certificates. Paths are files */
  char caPath[SMEM_TLS_PATH_SIZE];
  char crlPath[SMEM_TLS_PATH_SIZE];
  char certPath[SMEM_TLS_PATH_SIZE];
  char keyPath[SMEM_TLS_PATH_SIZE];
  char keyPassPath[SMEM_TLS_PATH_SIZE];
  char packagePath[SMEM_TLS_PATH_SIZE];
  char decrypterLibPath[SMEM_TLS_PATH_SIZE];
} smem_tls_config;

/* smem_bm_config_init() first. The fields of level 1, and where other hosts reach this process. */
typedef struct {
  uint32_t initTimeout;
  uint32_t createTimeout;
  uint32_t controlOperationTimeout;
  bool startConfigStoreServer;
  bool startConfigStoreOnly;
  bool dynamicWorldSize;
  bool unifiedAddressSpace;
  bool autoRanking; /* true, unlike in level 1 */
  uint16_t rankId;
  uint32_t flags;
  char hcomUrl[64]; /* "tcp://IPv4:port", port 0 picks one; "": from where the store is reached */
  smem_tls_config hcomTlsConfig;
  smem_tls_config storeTlsConfig;
} smem_bm_config_v2_t;

typedef struct {
  uint64_t maxDramSize; /* the most that any rank brings: the distance between two slots */
  uint64_t maxHbmSize;
  uint64_t localDRAMSize; /* what we bring; 0 is fine */
  uint64_t localHBMSize;
  smem_bm_data_op_type dataOpType; /* ignored: the engine chooses */
  uint32_t flags;                  /* 0, or bits 0 to 6: NUMA node of the host slot, 127 any */
  char tag[32];                    /* ignored, and so is the next */
  char tagOpInfo[256];
  /*
   * With SMEM_BM_FLAG_CREATE_WITH_SHM in `flags`: a file of memfd_create() with MFD_ALLOW_SEALING,
   * whose first localDRAMSize bytes are the host slot. The caller keeps the descriptor.
   */
  int dramShmFd;
} smem_bm_create_option_t;

typedef struct {
  const void* src;
  void* dest;
  size_t dataSize;
} smem_copy_params;

typedef struct {
  void** sources;
  void** destinations;
  const uint64_t* dataSizes;
  uint32_t batchSize;
} smem_batch_copy_params;

SMEM_API int32_t smem_bm_config_init_v2(smem_bm_config_v2_t* config);
SMEM_API int32_t smem_bm_init_v2(const char* storeURL, uint32_t worldSize, uint16_t deviceId,
                                 const smem_bm_config_v2_t* config);
SMEM_API int32_t smem_bm_join_v2(smem_bm_t handle, uint32_t flags);
SMEM_API int32_t smem_bm_copy_v2(smem_bm_t handle, smem_copy_params* params, smem_bm_copy_type t,
                                 uint32_t flags);

/* smem_bm_create() with room for ranks that bring more than we do. */
SMEM_API smem_bm_t smem_bm_create2(uint32_t id, const smem_bm_create_option_t* option);
SMEM_API uint64_t smem_bm_get_local_mem_size_by_mem_type(smem_bm_t handle, smem_bm_mem_type type);
SMEM_API void* smem_bm_ptr_by_mem_type(smem_bm_t handle, smem_bm_mem_type type,
                                       uint16_t peerRankId);
/*
 * Copies in any order; each goes where its own addresses say. With ASYNC_COPY_FLAG they go on after
 * the return. On failure all others are made nevertheless.
 */
SMEM_API int32_t smem_bm_copy_batch(smem_bm_t handle, smem_batch_copy_params* params,
                                    smem_bm_copy_type t, uint32_t flags);
/* Waits for all copies that this thread has begun with ASYNC_COPY_FLAG. */
SMEM_API int32_t smem_bm_wait(smem_bm_t handle);
/* Copies between this memory and other hosts need no buffer until it is unregistered. */
SMEM_API int32_t smem_bm_register_user_mem(smem_bm_t handle, uint64_t addr, uint64_t size);
SMEM_API int32_t smem_bm_unregister_user_mem(smem_bm_t handle, uint64_t addr);
/* Whose slot that is; UINT32_MAX when it is nobody's. */
SMEM_API uint32_t smem_bm_get_rank_id_by_gva(smem_bm_t handle, void* gva);

#ifdef __cplusplus
}
#endif

#ifndef SMEM_BUILDING
#define smem_bm_config_t smem_bm_config_v2_t
#define smem_bm_config_init smem_bm_config_init_v2
#define smem_bm_init smem_bm_init_v2
#define smem_bm_join smem_bm_join_v2
#define smem_bm_copy smem_bm_copy_v2
#endif

#endif
