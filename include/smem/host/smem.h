#ifndef SMEM_H
#define SMEM_H

/*
 * The library as a whole. A program calls smem_init(), then smem_bm_init() (smem_bm.h) or
 * smem_shm_init() (smem_shm.h) or both, and at the end smem_uninit().
 *
 * Functions that return int32_t return 0 or a code of smem_codes.h. All are safe from any thread. A
 * process may fork before smem_init(); in a child of a process that had called it, the library is
 * as if it had not been.
 *
 * Define SMEM_API_LEVEL as 2 before the first include for the later form of the interface: other
 * parameters of smem_bm_join() and smem_bm_copy(), a longer smem_bm_config_t, and more functions.
 * Both forms may be used in one program.
 */

#include <stddef.h>
#include <stdint.h>

#ifndef __cplusplus
#include <stdbool.h>
#endif

#include "smem_codes.h"

#ifndef SMEM_API_LEVEL
#define SMEM_API_LEVEL 1
#endif

#if defined(SMEM_BUILDING)
#define SMEM_API __attribute__((visibility("default")))
#else
#define SMEM_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* May be repeated. No flags exist: `flags` is ignored. */
SMEM_API int32_t smem_init(uint32_t flags);
/*
 * Destroys all objects, ends smem_bm_init() and smem_shm_init(). smem_init() may follow. Barriers
 * and allgathers that other threads are in fail; other calls are waited for.
 */
SMEM_API void smem_uninit(void);

/*
 * Log lines of this library go to `func` instead of standard error. `level` is 0 debug, 1 info, 2
 * warning or 3 error. It is called from any thread and must not call this library.
 */
SMEM_API int32_t smem_set_extern_logger(void (*func)(int level, const char* msg));
/* Lines below this level are dropped; 0 to 3 as above. Without it, HMC_LOG decides. */
SMEM_API int32_t smem_set_log_level(int level);

/*
 * The sentence of the last call of this thread that failed, never NULL. It stays valid until the
 * next failure in this thread.
 */
SMEM_API const char* smem_get_last_err_msg(void);
/* The same, and "" from then on. */
SMEM_API const char* smem_get_and_clear_last_err_msg(void);

#ifdef __cplusplus
}
#endif

#if SMEM_API_LEVEL >= 2
#include "smem_v2.h"
#endif

#endif
