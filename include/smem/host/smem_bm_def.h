#ifndef SMEM_BM_DEF_H
#define SMEM_BM_DEF_H

#include <stdint.h>

#ifndef __cplusplus
#include <stdbool.h>
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* A pool, see smem_bm_create(). */
typedef void* smem_bm_t;

/* As good as no timeout: 136 years. */
#define SMEM_BM_TIMEOUT_MAX UINT32_MAX

/*
 * What moves the bytes. The best that reaches a slot is taken, whatever is said here; the names are
 * those of programs that choose.
 */
typedef enum {
  SMEMB_DATA_OP_SDMA = 1U << 0,
  SMEMB_DATA_OP_ROCE = 1U << 1,
  /* Of the later interface. */
  SMEMB_DATA_OP_HOST_RDMA = 1U << 1,
  SMEMB_DATA_OP_HOST_TCP = 1U << 2,
  SMEMB_DATA_OP_DEVICE_RDMA = 1U << 3,
  SMEMB_DATA_OP_HOST_URMA = 1U << 4,
  SMEMB_DATA_OP_BUTT
} smem_bm_data_op_type;

/*
 * From where to where. L is memory of this process on its device (on the host where there is no
 * device, and our own slot), H is memory of this process on the host, G is a slot of any rank.
 */
typedef enum {
  SMEMB_COPY_L2G = 0,
  SMEMB_COPY_G2L = 1,
  SMEMB_COPY_G2H = 2,
  SMEMB_COPY_H2G = 3,
#if SMEM_API_LEVEL >= 2
  /* GH is the host slot of any rank. */
  SMEMB_COPY_L2GH = 4,
  SMEMB_COPY_GH2L = 5,
  SMEMB_COPY_GH2H = 6,
  SMEMB_COPY_H2GH = 7,
  SMEMB_COPY_G2G = 8,
  SMEMB_COPY_AUTO = 9, /* whatever the addresses say */
#endif
  SMEMB_COPY_BUTT
} smem_bm_copy_type;

/* smem_bm_config_init() first. Timeouts are in seconds, 1 at least. */
typedef struct {
  uint32_t initTimeout;             /* of smem_bm_init(); 120 */
  uint32_t createTimeout;           /* of smem_bm_create(); 120 */
  uint32_t controlOperationTimeout; /* of everything else that waits; 120 */
  bool startConfigStore;            /* serve the store from here, see smem_bm_init(); true */
  bool startConfigStoreOnly;        /* serve the store and take no rank; false */
  bool dynamicWorldSize;            /* ranks always come and go as they like: ignored; false */
  bool unifiedAddressSpace;         /* must be true */
  bool autoRanking;                 /* take the lowest rank that is free; false */
  uint16_t rankId;                  /* our rank without autoRanking; 65535 is none */
  uint32_t flags;                   /* none exist: 0 */
} smem_bm_config_t;

#ifdef __cplusplus
}
#endif

#endif
