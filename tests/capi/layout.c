/* Sizes, offsets and values that programs were compiled with. An array of -1 elements is an error.
 */
#include <stddef.h>

#include "smem_bm.h"
#include "smem_security.h"
#include "smem_shm.h"
#include "smem_shm_context.h"
#include "smem_trans.h"

#define HOLDS(name, condition) typedef char name[(condition) ? 1 : -1]

HOLDS(code_param, SMEM_INVALID_PARAM == -2000);
HOLDS(code_malloc, SMEM_MALLOC_FAILED == -2001);
HOLDS(code_new, SMEM_NEW_OBJECT_FAILED == -2002);
HOLDS(code_started, SMEM_NOT_STARTED == -2003);
HOLDS(code_timeout, SMEM_TIMEOUT == -2004);
HOLDS(code_repeat, SMEM_REPEAT_CALL == -2005);
HOLDS(code_duplicated, SMEM_DUPLICATED_OBJECT == -2006);
HOLDS(code_not_exists, SMEM_OBJECT_NOT_EXISTS == -2007);
HOLDS(code_not_initialized, SMEM_NOT_INITIALIZED == -2008);
HOLDS(code_in_use, SMEM_RESOURCE_IN_USE == -2009);

HOLDS(bm_max, SMEM_BM_TIMEOUT_MAX == UINT32_MAX);
HOLDS(shm_max, SMEM_SHM_TIMEOUT_MAX == UINT32_MAX);
HOLDS(sdma, SMEMB_DATA_OP_SDMA == 1);
HOLDS(roce, SMEMB_DATA_OP_ROCE == 2);
HOLDS(l2g, SMEMB_COPY_L2G == 0 && SMEMB_COPY_G2L == 1);
HOLDS(g2h, SMEMB_COPY_G2H == 2 && SMEMB_COPY_H2G == 3);
HOLDS(roles, SMEM_TRANS_SENDER == 1 && SMEM_TRANS_RECEIVER == 2 && SMEM_TRANS_BOTH == 3);
HOLDS(tls_option, sizeof(smem_tls_option) == 96);
HOLDS(trans_size, sizeof(smem_trans_config_t) == 24);
HOLDS(trans_op, offsetof(smem_trans_config_t, dataOpType) == 16);
HOLDS(trans_serve, offsetof(smem_trans_config_t, startConfigServer) == 20);
HOLDS(mte, SMEMS_DATA_OP_MTE == 1 && SMEMS_DATA_OP_SDMA == 2 && SMEMS_DATA_OP_ROCE == 4);

#if SMEM_API_LEVEL < 2
HOLDS(butt, SMEMB_COPY_BUTT == 4);
HOLDS(bm_size, sizeof(smem_bm_config_t) == 24);
HOLDS(bm_serve, offsetof(smem_bm_config_t, startConfigStore) == 12);
HOLDS(bm_serve_only, offsetof(smem_bm_config_t, startConfigStoreOnly) == 13);
HOLDS(bm_dynamic, offsetof(smem_bm_config_t, dynamicWorldSize) == 14);
HOLDS(bm_unified, offsetof(smem_bm_config_t, unifiedAddressSpace) == 15);
#else
HOLDS(butt, SMEMB_COPY_BUTT == 10 && SMEMB_COPY_AUTO == 9 && SMEMB_COPY_H2GH == 7);
HOLDS(ops, SMEMB_DATA_OP_HOST_RDMA == 2 && SMEMB_DATA_OP_HOST_TCP == 4);
HOLDS(more_ops, SMEMB_DATA_OP_DEVICE_RDMA == 8 && SMEMB_DATA_OP_HOST_URMA == 16);
HOLDS(bm_size, sizeof(smem_bm_config_t) == 3676);
HOLDS(bm_url, offsetof(smem_bm_config_t, hcomUrl) == 24);
HOLDS(bm_tls, offsetof(smem_bm_config_t, hcomTlsConfig) == 88);
HOLDS(bm_store_tls, offsetof(smem_bm_config_t, storeTlsConfig) == 1881);
HOLDS(tls_size, sizeof(smem_tls_config) == 1793);
HOLDS(option_size, sizeof(smem_bm_create_option_t) == 336);
HOLDS(copy_size, sizeof(smem_copy_params) == 24);
HOLDS(batch_size, sizeof(smem_batch_copy_params) == 32);
HOLDS(mem_type, SMEM_MEM_TYPE_HOST == 3 && SMEM_MEM_TYPE_BUTT == 4);
#endif
HOLDS(bm_auto, offsetof(smem_bm_config_t, autoRanking) == 16);
HOLDS(bm_rank, offsetof(smem_bm_config_t, rankId) == 18);
HOLDS(bm_flags, offsetof(smem_bm_config_t, flags) == 20);
HOLDS(shm_size, sizeof(smem_shm_config_t) == 20);
HOLDS(shm_serve, offsetof(smem_shm_config_t, startConfigStore) == 12);
HOLDS(shm_flags, offsetof(smem_shm_config_t, flags) == 16);
HOLDS(context_size, sizeof(smem_shm_device_context_t) == 72);
HOLDS(context_base, offsetof(smem_shm_device_context_t, base) == 24);
HOLDS(context_reach, offsetof(smem_shm_device_context_t, reach) == 64);
