#ifndef SMEM_SHM_DEF_H
#define SMEM_SHM_DEF_H

#include <stdint.h>

#ifndef __cplusplus
#include <stdbool.h>
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Memory of all ranks, see smem_shm_create(). */
typedef void* smem_shm_t;

/* As good as no timeout: 136 years. */
#define SMEM_SHM_TIMEOUT_MAX UINT32_MAX
/* Numbers that smem_shm_atomic_alloc_value() can hand out. */
#define SMEM_SHM_ATOMIC_NUM_LIMIT 1024U

typedef enum {
  SMEMS_DATA_OP_MTE = 1U << 0, /* loads and stores through a mapping */
  SMEMS_DATA_OP_SDMA = 1U << 1,
  SMEMS_DATA_OP_ROCE = 1U << 2,
  SMEMS_DATA_OP_RDMA = 1U << 2 /* the later interface's name */
} smem_shm_data_op_type;

/* smem_shm_config_init() first. Timeouts are in seconds, 1 at least. */
typedef struct {
  uint32_t shmInitTimeout;          /* of smem_shm_init(); 120 */
  uint32_t shmCreateTimeout;        /* of smem_shm_create(); 120 */
  uint32_t controlOperationTimeout; /* of barrier, allgather and the rest; 120 */
  bool startConfigStore;            /* rank 0 serves the store; true */
  uint32_t flags;                   /* none exist: 0 */
} smem_shm_config_t;

#ifdef __cplusplus
}
#endif

#endif
