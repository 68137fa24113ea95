#ifndef SMEM_SHM_DEVICE_H
#define SMEM_SHM_DEVICE_H

/*
 * The device side of Share Memory: for CUDA kernels (nvcc, sm_70 and newer), and the same functions
 * for host code over host memory. C++11. May be included together with smem_shm.h.
 *
 * Functions take an object as a context (smem_shm_get_device_context()), which may be a parameter
 * of a kernel, or as an id. For ids call smem_shm_bind(handle) first: in host code once for each
 * process, for kernels once in every .cu file that uses ids, and again when the object was made
 * again.
 *
 * An address `gva` may lie in any rank's slot: it stands for the same place in the slot of `rank`.
 * Functions that return int32_t return 0 or a code of smem_codes.h. None of them waits without
 * bound. Scopes: smem_shm_thread() is the default; with smem_shm_warp() or smem_shm_block() all
 * threads of a warp or block call it together.
 */

#ifndef __cplusplus
#error "smem_shm_device.h needs C++11"
#endif

#include "../host/smem_shm_context.h"
#include "smem_shm_device_memory.h"

#define SMEM_SHM_ALIGN_SIZE 32
#define SMEM_SHM_ALIGN_DOWN(value, unit) ((value) / (unit) * (unit))
/* Ids below this can be bound. */
#define SMEM_OBJECT_NUM_MAX 511

/* ---- objects by id ---- */

#if defined(__CUDACC__)
static __device__ smem_shm_device_context_t smem_shm_device_table[SMEM_OBJECT_NUM_MAX];
#endif
inline smem_shm_device_context_t* smem_shm_host_table() {
  static smem_shm_device_context_t table[SMEM_OBJECT_NUM_MAX];
  return table;
}

/*
 * For kernels of this file and for host code. The current CUDA device is the object's. No thread
 * uses the id meanwhile.
 */
static inline int32_t smem_shm_bind_context(uint32_t id, const smem_shm_device_context_t& context) {
  if (id >= SMEM_OBJECT_NUM_MAX) return SMEM_INVALID_PARAM;
  smem_shm_host_table()[id] = context;
#if defined(__CUDACC__)
  if (context.device >= 0) {
    int current = -1;
    if (cudaGetDevice(&current) != cudaSuccess) return SMEM_ERROR;
    if (current != context.device) return SMEM_INVALID_PARAM;
    if (cudaMemcpyToSymbol(smem_shm_device_table, &context, sizeof(context),
                           id * sizeof(context)) != cudaSuccess)
      return SMEM_ERROR;
  }
#endif
  return SMEM_OK;
}
static inline int32_t smem_shm_bind(smem_shm_t handle) {
  smem_shm_device_context_t context;
  const int32_t code = smem_shm_get_device_context(handle, &context, sizeof(context));
  return code == SMEM_OK ? smem_shm_bind_context(context.id, context) : code;
}
/* Before the object is destroyed, where somebody may still use its id. */
static inline int32_t smem_shm_unbind(uint32_t id) {
  if (id >= SMEM_OBJECT_NUM_MAX) return SMEM_INVALID_PARAM;
  smem_shm_device_context_t context = smem_shm_host_table()[id];
  if (context.rankSize == 0) return SMEM_OBJECT_NOT_EXISTS;
  context.rankSize = 0;
  return smem_shm_bind_context(id, context);
}

/* NULL while nothing is bound to the id. */
SMEM_SHM_INLINE_AICORE const smem_shm_device_context_t* smem_shm_context(uint32_t id) {
  if (id >= SMEM_OBJECT_NUM_MAX) return nullptr;
#if defined(__CUDA_ARCH__)
  const smem_shm_device_context_t* const context = &smem_shm_device_table[id];
#else
  const smem_shm_device_context_t* const context = &smem_shm_host_table()[id];
#endif
  return context->rankSize != 0 ? context : nullptr;
}

/* ---- what an object is ---- */

SMEM_SHM_INLINE_AICORE uint32_t smem_shm_get_global_rank(const smem_shm_device_context_t& context) {
  return context.rank;
}
SMEM_SHM_INLINE_AICORE uint32_t
smem_shm_get_global_rank_size(const smem_shm_device_context_t& context) {
  return context.rankSize;
}
/*
 * UINT32_MAX while nothing is bound to the id. Templates, because smem_shm.h has functions of these
 * names for handles, and a plain 0 would be one or the other.
 */
template <class Id>
SMEM_SHM_INLINE_AICORE typename std::enable_if<std::is_integral<Id>::value, uint32_t>::type
smem_shm_get_global_rank(Id id) {
  const smem_shm_device_context_t* const context = smem_shm_context(static_cast<uint32_t>(id));
  return context ? context->rank : UINT32_MAX;
}
SMEM_SHM_INLINE_AICORE uint32_t smem_shm_get_global_rank() {
  return smem_shm_get_global_rank(0U);
}
template <class Id>
SMEM_SHM_INLINE_AICORE typename std::enable_if<std::is_integral<Id>::value, uint32_t>::type
smem_shm_get_global_rank_size(Id id) {
  const smem_shm_device_context_t* const context = smem_shm_context(static_cast<uint32_t>(id));
  return context ? context->rankSize : UINT32_MAX;
}
SMEM_SHM_INLINE_AICORE uint32_t smem_shm_get_global_rank_size() {
  return smem_shm_get_global_rank_size(0U);
}

SMEM_SHM_INLINE_AICORE uint64_t
smem_shm_get_symmetric_size(const smem_shm_device_context_t& context) {
  return context.symmetricSize;
}
/* 0 while nothing is bound. */
SMEM_SHM_INLINE_AICORE uint64_t smem_shm_get_symmetric_size(uint32_t id = 0) {
  const smem_shm_device_context_t* const context = smem_shm_context(id);
  return context ? context->symmetricSize : 0;
}

/* What smem_shm_set_extra_context() of this process has set last, also after binding. */
SMEM_SHM_INLINE_AICORE uint32_t
smem_shm_get_extra_context_size(const smem_shm_device_context_t& context) {
  return smem_shm_load(context.extraContextSize);
}
SMEM_SHM_INLINE_AICORE uint32_t smem_shm_get_extra_context_size(uint32_t id = 0) {
  const smem_shm_device_context_t* const context = smem_shm_context(id);
  return context ? smem_shm_get_extra_context_size(*context) : 0;
}
SMEM_SHM_INLINE_AICORE void* smem_shm_get_extra_context_addr(
    const smem_shm_device_context_t& context) {
  return const_cast<void*>(context.extraContext);
}
SMEM_SHM_INLINE_AICORE void* smem_shm_get_extra_context_addr(uint32_t id = 0) {
  const smem_shm_device_context_t* const context = smem_shm_context(id);
  return context ? smem_shm_get_extra_context_addr(*context) : nullptr;
}

/* ---- addresses ---- */

/* Where `size` bytes at `gva` are in the slot of `rank`, or why they are nowhere. */
SMEM_SHM_INLINE_AICORE int32_t smem_shm_find(const smem_shm_device_context_t& context,
                                             const void* gva, uint32_t rank, uint64_t size,
                                             char** found) {
  char* const base = static_cast<char*>(context.base);
  uint64_t offset = reinterpret_cast<uintptr_t>(gva) - reinterpret_cast<uintptr_t>(context.base);
  if (rank >= context.rankSize || offset >= context.symmetricSize * context.rankSize)
    return SMEM_INVALID_PARAM;
  if (offset >= context.symmetricSize) offset %= context.symmetricSize;
  if (size > context.symmetricSize - offset) return SMEM_INVALID_PARAM;
  if (context.reach && context.reach[rank] == 0) return SMEM_OBJECT_NOT_EXISTS;
  *found = base + rank * context.symmetricSize + offset;
  return SMEM_OK;
}

/* NULL for an address that is in no slot, and for a rank whose slot is not mapped here. */
template <class T>
SMEM_SHM_INLINE_AICORE T* smem_shm_ptr(const smem_shm_device_context_t& context, T* gva,
                                       uint32_t rank) {
  char* found = nullptr;
  if (smem_shm_find(context, gva, rank, sizeof(T), &found) != SMEM_OK) return nullptr;
  return reinterpret_cast<T*>(found);
}
template <class T>
SMEM_SHM_INLINE_AICORE T* smem_shm_ptr(T* gva, uint32_t rank, uint32_t id = 0) {
  const smem_shm_device_context_t* const context = smem_shm_context(id);
  return context ? smem_shm_ptr(*context, gva, rank) : nullptr;
}

/* ---- copies, by address: sizes are bytes, and the two do not overlap ---- */

/* Rows. The gaps between one row's end and the next one's beginning are bytes, too. */
struct smem_shm_copy_params {
  uint32_t blockCount;
  uint32_t blockLen;
  uint32_t srcStride;
  uint32_t dstStride;
};

template <class Scope>
SMEM_SHM_INLINE_AICORE void smem_shm_copy_rows(void* to, const void* from,
                                               const smem_shm_copy_params& rows) {
  for (uint32_t row = 0; row < rows.blockCount; ++row) {
    smem_shm_copy_part<Scope>(
        static_cast<char*>(to) + row * (uint64_t(rows.blockLen) + rows.dstStride),
        static_cast<const char*>(from) + row * (uint64_t(rows.blockLen) + rows.srcStride),
        rows.blockLen);
  }
  Scope::sync();
}

/* `enableL2` is ignored. UB is shared memory, or any other memory of this kernel. */
#define SMEM_SHM_COPY(name)                                                                     \
  template <class T>                                                                            \
  SMEM_SHM_INLINE_AICORE void name(T* to, const T* from, uint64_t size, bool enableL2 = true) { \
    (void)enableL2;                                                                             \
    smem_shm_copy_part<smem_shm_thread>(to, from, size);                                        \
  }                                                                                             \
  template <class T, class Scope, class = decltype(Scope::width())>                             \
  SMEM_SHM_INLINE_AICORE void name(T* to, const T* from, uint64_t size, Scope) {                \
    smem_shm_copy_part<Scope>(to, from, size);                                                  \
    Scope::sync();                                                                              \
  }                                                                                             \
  template <class T, class Scope = smem_shm_thread>                                             \
  SMEM_SHM_INLINE_AICORE void name(T* to, const T* from, const smem_shm_copy_params& rows,      \
                                   Scope = Scope()) {                                           \
    smem_shm_copy_rows<Scope>(to, from, rows);                                                  \
  }
SMEM_SHM_COPY(smem_shm_copy_gm2ub)
SMEM_SHM_COPY(smem_shm_copy_ub2gm)
SMEM_SHM_COPY(smem_shm_copy_gm2gm)
#undef SMEM_SHM_COPY

/* Copies need no buffer here. Programs that have functions of these names keep theirs. */
template <class T>
SMEM_SHM_INLINE_AICORE void smem_shm_set_copy_ubuf(const T*, uint64_t) {}
template <class = void>
SMEM_SHM_INLINE_AICORE void smem_shm_unset_copy_ubuf() {}

/* ---- put and get ---- */

/* SMEM_INVALID_PARAM also for host code and an object that is not host memory. */
template <class T>
SMEM_SHM_INLINE_AICORE int32_t smem_shm_find_all(const smem_shm_device_context_t& context,
                                                 const T* gva, uint32_t rank, uint64_t count,
                                                 char** found) {
#if !defined(__CUDA_ARCH__)
  if (context.device >= 0) return SMEM_INVALID_PARAM;
#endif
  if (count > context.symmetricSize / sizeof(T)) return SMEM_INVALID_PARAM;
  return smem_shm_find(context, gva, rank, count * sizeof(T), found);
}

/*
 * `count` elements to or from the slot of `rank`. Whoever shall read what was put is told by a flag
 * or a barrier.
 */
template <class T, class Scope = smem_shm_thread>
SMEM_SHM_INLINE_AICORE int32_t smem_shm_put(const smem_shm_device_context_t& context, T* gva,
                                            const typename smem_shm_same<T>::type* src,
                                            uint32_t rank, uint64_t count, Scope = Scope()) {
  char* to = nullptr;
  const int32_t code = smem_shm_find_all(context, gva, rank, count, &to);
  if (code != SMEM_OK) return code;
  smem_shm_copy_part<Scope>(to, src, count * sizeof(T));
  Scope::sync();
  return SMEM_OK;
}
template <class T, class Scope = smem_shm_thread>
SMEM_SHM_INLINE_AICORE int32_t smem_shm_get(const smem_shm_device_context_t& context, const T* gva,
                                            typename smem_shm_same<T>::type* dst, uint32_t rank,
                                            uint64_t count, Scope = Scope()) {
  char* from = nullptr;
  const int32_t code = smem_shm_find_all(context, gva, rank, count, &from);
  if (code != SMEM_OK) return code;
  smem_shm_copy_part<Scope>(dst, from, count * sizeof(T));
  Scope::sync();
  return SMEM_OK;
}
template <class T, class Scope = smem_shm_thread>
SMEM_SHM_INLINE_AICORE int32_t smem_shm_put(T* gva, const typename smem_shm_same<T>::type* src,
                                            uint32_t rank, uint64_t count, uint32_t id = 0,
                                            Scope scope = Scope()) {
  const smem_shm_device_context_t* const context = smem_shm_context(id);
  return context ? smem_shm_put(*context, gva, src, rank, count, scope) : SMEM_OBJECT_NOT_EXISTS;
}
template <class T, class Scope = smem_shm_thread>
SMEM_SHM_INLINE_AICORE int32_t smem_shm_get(const T* gva, typename smem_shm_same<T>::type* dst,
                                            uint32_t rank, uint64_t count, uint32_t id = 0,
                                            Scope scope = Scope()) {
  const smem_shm_device_context_t* const context = smem_shm_context(id);
  return context ? smem_shm_get(*context, gva, dst, rank, count, scope) : SMEM_OBJECT_NOT_EXISTS;
}

/* ---- flags: integers of 4 or 8 bytes in any slot ---- */

/* Whoever waits for it sees what this thread, or the block before its last sync, has written. */
template <class T>
SMEM_SHM_INLINE_AICORE void smem_shm_set_flag(T* gva, typename smem_shm_same<T>::type value) {
  smem_shm_store(gva, value);
}
/* Until the flag has this value. SMEM_TIMEOUT. */
template <class T>
SMEM_SHM_INLINE_AICORE int32_t smem_shm_wait_flag(const T* gva,
                                                  typename smem_shm_same<T>::type value,
                                                  uint64_t timeoutNs = SMEM_SHM_WAIT_NS) {
  return smem_shm_await<smem_shm_equals<T>>(gva, value, timeoutNs);
}
/* Until a counter has got there, or further. */
template <class T>
SMEM_SHM_INLINE_AICORE int32_t smem_shm_wait_at_least(const T* gva,
                                                      typename smem_shm_same<T>::type value,
                                                      uint64_t timeoutNs = SMEM_SHM_WAIT_NS) {
  return smem_shm_await<smem_shm_at_least<T>>(gva, value, timeoutNs);
}
/* The same with a buffer, which gets the flag's value. */
template <class T>
SMEM_SHM_INLINE_AICORE void smem_shm_set_flag(T* ub, T* gva,
                                              typename smem_shm_same<T>::type value) {
  *ub = value;
  smem_shm_store(gva, value);
}
template <class T>
SMEM_SHM_INLINE_AICORE int32_t smem_shm_wait_flag(T* ub, const T* gva,
                                                  typename smem_shm_same<T>::type value,
                                                  uint64_t timeoutNs = SMEM_SHM_WAIT_NS) {
  const int32_t code = smem_shm_wait_flag(gva, value, timeoutNs);
  *ub = smem_shm_load(gva);
  return code;
}

/* ---- a barrier of all ranks ---- */

/* A line of memory for each word: which barrier its owner has passed, then one for each round. */
SMEM_SHM_INLINE_AICORE uint32_t* smem_shm_sync_word(const smem_shm_device_context_t& context,
                                                    uint32_t rank, uint32_t number) {
  char* const words = static_cast<char*>(context.sync) + rank * context.syncStride;
  return reinterpret_cast<uint32_t*>(words + number * 64U);
}

/* In round k everyone signals the rank 2^k further on, so that in the end all know of all. */
SMEM_SHM_INLINE_AICORE int32_t smem_shm_barrier_ranks(const smem_shm_device_context_t& context,
                                                      uint64_t timeoutNs) {
  if (!context.sync) return SMEM_OBJECT_NOT_EXISTS;
  uint32_t* const passed = smem_shm_sync_word(context, context.rank, 0);
  const uint32_t number = smem_shm_load(passed) + 1;
  const uint64_t began = smem_shm_now();
  uint32_t round = 0;
  smem_shm_fence();
  for (uint32_t distance = 1; distance < context.rankSize; distance *= 2) {
    const uint32_t next = (context.rank + distance) % context.rankSize;
    ++round;
    smem_shm_store(smem_shm_sync_word(context, next, round), number);
    const uint64_t spent = smem_shm_now() - began;
    const int32_t code = smem_shm_wait_at_least(smem_shm_sync_word(context, context.rank, round),
                                                number, spent < timeoutNs ? timeoutNs - spent : 0);
    if (code != SMEM_OK) return code;
  }
  smem_shm_store(passed, number);
  return SMEM_OK;
}

/*
 * Returns when all ranks have called it: what they wrote before is visible then. One call at a time
 * for each rank: of a grid, let one block call it. SMEM_TIMEOUT: this rank has come nevertheless,
 * and others may pass; call it again to go on waiting, it is the same barrier.
 * SMEM_OBJECT_NOT_EXISTS where ranks are on other hosts: use smem_shm_control_barrier(), with which
 * it has nothing in common.
 */
template <class Scope = smem_shm_thread>
SMEM_SHM_INLINE_AICORE int32_t smem_shm_barrier_all(const smem_shm_device_context_t& context,
                                                    uint64_t timeoutNs = SMEM_SHM_WAIT_NS,
                                                    Scope = Scope()) {
  int32_t code = SMEM_OK;
  Scope::sync();
  if (Scope::index() == 0) code = smem_shm_barrier_ranks(context, timeoutNs);
  return Scope::first(code);
}
template <class Scope = smem_shm_thread>
SMEM_SHM_INLINE_AICORE int32_t smem_shm_barrier_all(uint32_t id = 0,
                                                    uint64_t timeoutNs = SMEM_SHM_WAIT_NS,
                                                    Scope scope = Scope()) {
  const smem_shm_device_context_t* const context = smem_shm_context(id);
  return context ? smem_shm_barrier_all(*context, timeoutNs, scope) : SMEM_OBJECT_NOT_EXISTS;
}

#include "smem_shm_device_typed.h"

#endif
