#ifndef SMEM_SHM_DEVICE_MEMORY_H
#define SMEM_SHM_DEVICE_MEMORY_H

/*
 * What smem_shm_device.h, which includes this, is made of: loads, stores, waits, atomics and copies
 * in memory of other processes, the same for kernels and for host code.
 */

#include <sched.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#include <type_traits>

#include "../host/smem_codes.h"

#if defined(__CUDACC__)
/* Static: with separate compilation, each file has a table of its own. */
#define SMEM_SHM_INLINE_AICORE static __host__ __device__ __forceinline__
#define SMEM_SHM_MEMBER static __host__ __device__ __forceinline__
#else
#define SMEM_SHM_INLINE_AICORE static inline
#define SMEM_SHM_MEMBER static inline
#endif

/* What a wait is bounded by unless the caller says otherwise: 10 s. May be defined before. */
#ifndef SMEM_SHM_WAIT_NS
#define SMEM_SHM_WAIT_NS 10000000000ULL
#endif

/*
 * Who calls a function together: all threads of it, with the same arguments. They have done it all
 * when any of them returns. Host code is always one thread.
 */
struct smem_shm_thread {
  SMEM_SHM_MEMBER uint32_t index() { return 0; }
  SMEM_SHM_MEMBER uint32_t width() { return 1; }
  SMEM_SHM_MEMBER void sync() {}
  SMEM_SHM_MEMBER int32_t first(int32_t value) { return value; } /* what thread 0 of it has */
};

#if defined(__CUDA_ARCH__)
struct smem_shm_block {
  SMEM_SHM_MEMBER uint32_t index() {
    return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  }
  SMEM_SHM_MEMBER uint32_t width() { return blockDim.x * blockDim.y * blockDim.z; }
  SMEM_SHM_MEMBER void sync() { __syncthreads(); }
  SMEM_SHM_MEMBER int32_t first(int32_t value) {
    __shared__ int32_t kept;
    if (index() == 0) kept = value;
    __syncthreads();
    const int32_t answer = kept;
    __syncthreads();
    return answer;
  }
};
/* All 32 threads of it. */
struct smem_shm_warp {
  SMEM_SHM_MEMBER uint32_t index() { return smem_shm_block::index() % 32; }
  SMEM_SHM_MEMBER uint32_t width() { return 32; }
  SMEM_SHM_MEMBER void sync() { __syncwarp(); }
  SMEM_SHM_MEMBER int32_t first(int32_t value) { return __shfl_sync(0xffffffffU, value, 0); }
};
#else
struct smem_shm_block : smem_shm_thread {};
struct smem_shm_warp : smem_shm_thread {};
#endif

/* T, but not to be deduced from: the pointer beside it decides. */
template <class T>
struct smem_shm_same {
  typedef T type;
};

/* Words that are loaded, stored and changed as a whole. */
template <class T>
struct smem_shm_word {
  static_assert(std::is_integral<T>::value && (sizeof(T) == 4 || sizeof(T) == 8),
                "flags and counters are integers of 4 or 8 bytes");
};

/* What was written before it is visible to everyone who sees what is written after it. */
SMEM_SHM_INLINE_AICORE void smem_shm_fence() {
#if defined(__CUDA_ARCH__)
  __threadfence_system();
#else
  __sync_synchronize();
#endif
}
/* All puts of this thread are in place. */
SMEM_SHM_INLINE_AICORE void smem_shm_quiet() {
  smem_shm_fence();
}

/* Acquires: what others wrote before they stored this is visible. */
template <class T>
SMEM_SHM_INLINE_AICORE T smem_shm_load(const T* gva) {
  (void)sizeof(smem_shm_word<T>);
#if defined(__CUDA_ARCH__)
  if (sizeof(T) == 4) {
    uint32_t value;
    asm volatile("ld.acquire.sys.u32 %0, [%1];" : "=r"(value) : "l"(gva) : "memory");
    return static_cast<T>(value);
  }
  uint64_t value;
  asm volatile("ld.acquire.sys.u64 %0, [%1];" : "=l"(value) : "l"(gva) : "memory");
  return static_cast<T>(value);
#else
  return __atomic_load_n(gva, __ATOMIC_ACQUIRE);
#endif
}

/* Releases: whoever loads this sees what was written before. */
template <class T>
SMEM_SHM_INLINE_AICORE void smem_shm_store(T* gva, typename smem_shm_same<T>::type value) {
  (void)sizeof(smem_shm_word<T>);
#if defined(__CUDA_ARCH__)
  if (sizeof(T) == 4) {
    asm volatile("st.release.sys.u32 [%0], %1;" ::"l"(gva), "r"(static_cast<uint32_t>(value))
                 : "memory");
  } else {
    asm volatile("st.release.sys.u64 [%0], %1;" ::"l"(gva), "l"(static_cast<uint64_t>(value))
                 : "memory");
  }
#else
  __atomic_store_n(gva, value, __ATOMIC_RELEASE);
#endif
}

/*
 * Atomics answer what was there before; they acquire and release. Processors of one kind may use
 * them on the same word: what a GPU does to host memory is atomic for others only where
 * cudaDevAttrHostNativeAtomicSupported says so.
 */
template <class T>
SMEM_SHM_INLINE_AICORE T smem_shm_atomic_add(T* gva, typename smem_shm_same<T>::type value) {
  (void)sizeof(smem_shm_word<T>);
#if defined(__CUDA_ARCH__)
  if (sizeof(T) == 4) {
    uint32_t old;
    asm volatile("atom.acq_rel.sys.add.u32 %0, [%1], %2;"
                 : "=r"(old)
                 : "l"(gva), "r"(static_cast<uint32_t>(value))
                 : "memory");
    return static_cast<T>(old);
  }
  uint64_t old;
  asm volatile("atom.acq_rel.sys.add.u64 %0, [%1], %2;"
               : "=l"(old)
               : "l"(gva), "l"(static_cast<uint64_t>(value))
               : "memory");
  return static_cast<T>(old);
#else
  return __atomic_fetch_add(gva, value, __ATOMIC_ACQ_REL);
#endif
}

template <class T>
SMEM_SHM_INLINE_AICORE T smem_shm_atomic_exchange(T* gva, typename smem_shm_same<T>::type value) {
  (void)sizeof(smem_shm_word<T>);
#if defined(__CUDA_ARCH__)
  if (sizeof(T) == 4) {
    uint32_t old;
    asm volatile("atom.acq_rel.sys.exch.b32 %0, [%1], %2;"
                 : "=r"(old)
                 : "l"(gva), "r"(static_cast<uint32_t>(value))
                 : "memory");
    return static_cast<T>(old);
  }
  uint64_t old;
  asm volatile("atom.acq_rel.sys.exch.b64 %0, [%1], %2;"
               : "=l"(old)
               : "l"(gva), "l"(static_cast<uint64_t>(value))
               : "memory");
  return static_cast<T>(old);
#else
  return __atomic_exchange_n(gva, value, __ATOMIC_ACQ_REL);
#endif
}

/* Stores `value` if `expected` is there. */
template <class T>
SMEM_SHM_INLINE_AICORE T smem_shm_atomic_cas(T* gva, typename smem_shm_same<T>::type expected,
                                             typename smem_shm_same<T>::type value) {
  (void)sizeof(smem_shm_word<T>);
#if defined(__CUDA_ARCH__)
  if (sizeof(T) == 4) {
    uint32_t old;
    asm volatile("atom.acq_rel.sys.cas.b32 %0, [%1], %2, %3;"
                 : "=r"(old)
                 : "l"(gva), "r"(static_cast<uint32_t>(expected)), "r"(static_cast<uint32_t>(value))
                 : "memory");
    return static_cast<T>(old);
  }
  uint64_t old;
  asm volatile("atom.acq_rel.sys.cas.b64 %0, [%1], %2, %3;"
               : "=l"(old)
               : "l"(gva), "l"(static_cast<uint64_t>(expected)), "l"(static_cast<uint64_t>(value))
               : "memory");
  return static_cast<T>(old);
#else
  __atomic_compare_exchange_n(gva, &expected, value, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
  return expected;
#endif
}

/* Nanoseconds of a clock that only goes forward. */
SMEM_SHM_INLINE_AICORE uint64_t smem_shm_now() {
#if defined(__CUDA_ARCH__)
  uint64_t now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
#else
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1000000000ULL + static_cast<uint64_t>(now.tv_nsec);
#endif
}

/* Between two looks at a word. */
SMEM_SHM_INLINE_AICORE void smem_shm_relax(uint32_t looks) {
#if defined(__CUDA_ARCH__)
  (void)looks;
  __nanosleep(64);
#else
  /* Whoever is waited for may need this core. */
  if (looks >= 64) sched_yield();
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
#endif
}

/* What a wait is for. */
template <class T>
struct smem_shm_equals {
  SMEM_SHM_MEMBER bool met(T seen, T wanted) { return seen == wanted; }
};
/* Counters may pass zero. */
template <class T>
struct smem_shm_at_least {
  SMEM_SHM_MEMBER bool met(T seen, T wanted) {
    typedef typename std::make_unsigned<T>::type Unsigned;
    typedef typename std::make_signed<T>::type Signed;
    return static_cast<Signed>(static_cast<Unsigned>(seen) - static_cast<Unsigned>(wanted)) >= 0;
  }
};

template <class Condition, class T>
SMEM_SHM_INLINE_AICORE int32_t smem_shm_await(const T* gva, T wanted, uint64_t timeoutNs) {
  const uint64_t began = smem_shm_now();
  for (uint32_t looks = 0; !Condition::met(smem_shm_load(gva), wanted); ++looks) {
    /* It may have been stored while we did not run. */
    if (smem_shm_now() - began >= timeoutNs)
      return Condition::met(smem_shm_load(gva), wanted) ? SMEM_OK : SMEM_TIMEOUT;
    smem_shm_relax(looks);
  }
  return SMEM_OK;
}

#if defined(__CUDA_ARCH__)
/* Neighbouring threads side by side. Four loads are under way before the first of them is stored.
 */
template <class Unit, class Scope>
static __device__ __forceinline__ void smem_shm_copy_units(char* to, const char* from,
                                                           uint64_t count) {
  Unit* const target = reinterpret_cast<Unit*>(to);
  const Unit* const source = reinterpret_cast<const Unit*>(from);
  const uint64_t step = Scope::width();
  uint64_t i = Scope::index();
  for (; i + 3 * step < count; i += 4 * step) {
    const Unit first = source[i];
    const Unit second = source[i + step];
    const Unit third = source[i + 2 * step];
    const Unit fourth = source[i + 3 * step];
    target[i] = first;
    target[i + step] = second;
    target[i + 2 * step] = third;
    target[i + 3 * step] = fourth;
  }
  for (; i < count; i += step) target[i] = source[i];
}
#endif

/* This thread's part of a copy, in the largest units that both sides are aligned for. */
template <class Scope>
SMEM_SHM_INLINE_AICORE void smem_shm_copy_part(void* to, const void* from, uint64_t size) {
#if defined(__CUDA_ARCH__)
  char* const target = static_cast<char*>(to);
  const char* const source = static_cast<const char*>(from);
  const uint64_t both = reinterpret_cast<uint64_t>(target) | reinterpret_cast<uint64_t>(source);
  uint64_t done = 0;
  if (both % 16 == 0) {
    done = size / 16 * 16;
    smem_shm_copy_units<uint4, Scope>(target, source, size / 16);
  } else if (both % 8 == 0) {
    done = size / 8 * 8;
    smem_shm_copy_units<uint2, Scope>(target, source, size / 8);
  } else if (both % 4 == 0) {
    done = size / 4 * 4;
    smem_shm_copy_units<uint32_t, Scope>(target, source, size / 4);
  }
  smem_shm_copy_units<char, Scope>(target + done, source + done, size - done);
#else
  if (size > 0) memcpy(to, from, static_cast<size_t>(size));
#endif
}

#endif
