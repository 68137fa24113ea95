#ifndef SMEM_TRANS_DEF_H
#define SMEM_TRANS_DEF_H

#include <stdint.h>

#ifndef __cplusplus
#include <stdbool.h>
#endif

#include "smem_bm_def.h"

#ifdef __cplusplus
extern "C" {
#endif

/* An engine, see smem_trans_create(). */
typedef void* smem_trans_t;

/* For the reader: any engine reads and writes at any other. NONE is refused. */
typedef enum {
  SMEM_TRANS_NONE = 0,
  SMEM_TRANS_SENDER,
  SMEM_TRANS_RECEIVER,
  SMEM_TRANS_BOTH,
  SMEM_TRANS_BUTT
} smem_trans_role_t;

/* smem_trans_config_init() first. */
typedef struct {
  smem_trans_role_t role;          /* SMEM_TRANS_SENDER */
  uint32_t initTimeout;            /* of every call that waits, in seconds, 1 at least; 120 */
  uint32_t deviceId;               /* of smem_trans_malloc(); UINT32_MAX is the host */
  uint32_t flags;                  /* none exist: 0 */
  smem_bm_data_op_type dataOpType; /* ignored: the engine chooses; SMEMB_DATA_OP_SDMA */
  bool startConfigServer;          /* serve the store from here, if nobody does; false */
} smem_trans_config_t;

#ifdef __cplusplus
}
#endif

#endif
