#pragma once

#include <cstdint>
#include <cstring>

#include "memory/copy.h"

namespace hmc {

template <class Word>
inline void copyEnds(char* dst, const char* src, size_t size) {
  Word first;
  Word last;
  std::memcpy(&first, src, sizeof(Word));
  std::memcpy(&last, src + size - sizeof(Word), sizeof(Word));
  std::memcpy(dst, &first, sizeof(Word));
  std::memcpy(dst + size - sizeof(Word), &last, sizeof(Word));
}

#if defined(__x86_64__)
// The processor's own copy: what memcpy uses for these sizes too, without the overlapping stores
// that it puts around it for the sake of destinations that are not aligned; those cost more than
// they gain when other instructions follow at once, and 4 KiB take half again as long.
inline constexpr size_t kStringCopyFrom = 2048;
extern const bool kHasFastStringCopy;

inline bool stringCopy(char* dst, const char* src, size_t size) {
  if (size < kStringCopyFrom || reinterpret_cast<uintptr_t>(dst) % 64 != 0 || !kHasFastStringCopy)
    return false;
  asm volatile("rep movsb" : "+D"(dst), "+S"(src), "+c"(size) : : "memory");
  return true;
}
#else
inline bool stringCopy(char*, const char*, size_t) {
  return false;
}
#endif

// As copyHost(), without a call for the sizes of a flag or a counter, which arrive in one piece: a
// reader of an aligned word never sees half of it.
inline void quickCopy(char* dst, const char* src, size_t size) {
  if (size > 16) {
    if (size >= kStreamingThreshold) {
      copyHost(dst, src, size);
    } else if (!stringCopy(dst, src, size)) {
      std::memcpy(dst, src, size);
    }
  } else if (size >= 8) {
    copyEnds<uint64_t>(dst, src, size);
  } else if (size >= 4) {
    copyEnds<uint32_t>(dst, src, size);
  } else {
    for (size_t i = 0; i < size; ++i) dst[i] = src[i];
  }
}

// Asks memory for the beginning of what quickCopy() copies next, so that it answers while the copy
// before that one goes on: blocks of a few KiB in no order cost a fifth less.
inline void prefetchCopy(const char* dst, const char* src, size_t size) {
  constexpr size_t kLine = 64;
  constexpr size_t kMost = 8 * kLine;  // beyond that the processor prefetches by itself
  for (size_t at = 0; at < size && at < kMost; at += kLine) {
    __builtin_prefetch(src + at, 0);
    __builtin_prefetch(dst + at, 1);
  }
}

}  // namespace hmc
