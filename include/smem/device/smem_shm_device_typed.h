#ifndef SMEM_SHM_DEVICE_TYPED_H
#define SMEM_SHM_DEVICE_TYPED_H

/*
 * smem_shm_put_int(), smem_shm_get_float() and their kin, which smem_shm_device.h includes. Those
 * with a u copy from and to shared memory, which is no different here.
 */

#include "smem_shm_device.h"

#define SMEM_SHM_TYPED_PUT(templated, function, T, bytes)                                        \
  templated SMEM_SHM_INLINE_AICORE int32_t function(T* gva, const T* src, uint32_t rank,         \
                                                    uint64_t count, uint32_t id = 0) {           \
    static_assert(sizeof(T) == (bytes), "a type of another size than the function's name says"); \
    return smem_shm_put(gva, src, rank, count, id);                                              \
  }
#define SMEM_SHM_TYPED_GET(templated, function, T, bytes)                                        \
  templated SMEM_SHM_INLINE_AICORE int32_t function(const T* gva, T* dst, uint32_t rank,         \
                                                    uint64_t count, uint32_t id = 0) {           \
    static_assert(sizeof(T) == (bytes), "a type of another size than the function's name says"); \
    return smem_shm_get(gva, dst, rank, count, id);                                              \
  }
#define SMEM_SHM_TYPED(templated, name, T, bytes)               \
  SMEM_SHM_TYPED_PUT(templated, smem_shm_put_##name, T, bytes)  \
  SMEM_SHM_TYPED_GET(templated, smem_shm_get_##name, T, bytes)  \
  SMEM_SHM_TYPED_PUT(templated, smem_shm_uput_##name, T, bytes) \
  SMEM_SHM_TYPED_GET(templated, smem_shm_uget_##name, T, bytes)

SMEM_SHM_TYPED(, int, int, 4)
SMEM_SHM_TYPED(, int8_t, int8_t, 1)
SMEM_SHM_TYPED(, int16_t, int16_t, 2)
SMEM_SHM_TYPED(, int64_t, int64_t, 8)
SMEM_SHM_TYPED(, float, float, 4)
SMEM_SHM_TYPED(, int8, int8_t, 1)
SMEM_SHM_TYPED(, int16, int16_t, 2)
SMEM_SHM_TYPED(, int64, int64_t, 8)
/* Whichever type of two bytes the program has for them. */
SMEM_SHM_TYPED(template <class T>, half, T, 2)
SMEM_SHM_TYPED(template <class T>, float16_t, T, 2)
SMEM_SHM_TYPED(template <class T>, bfloat16_t, T, 2)

#undef SMEM_SHM_TYPED
#undef SMEM_SHM_TYPED_PUT
#undef SMEM_SHM_TYPED_GET

#endif
