#include "memory/streaming.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace hmc {

#if defined(__x86_64__)

namespace {

// Non-temporal stores do not read the destination from memory before they overwrite it, and do not
// throw out of the cache what others keep there. Four pages are copied side by side, a little of
// each in turn, all loads before all stores: one stream alone leaves the memory channels idle.
constexpr size_t kPage = 4096;
constexpr size_t kPages = 4;
constexpr size_t kGroup = kStreamingGroup;
static_assert(kGroup == kPages * kPage);
constexpr size_t kAhead = 512;

// The three differ in the width of a vector only.

__attribute__((target("sse2"))) void streamSse2(char* dst, const char* src, size_t groups) {
  using Vector = __m128i;
  for (; groups > 0; --groups, dst += kGroup, src += kGroup) {
    for (size_t at = 0; at < kPage; at += 2 * sizeof(Vector)) {
      Vector loaded[kPages][2];
#pragma GCC unroll 4
      for (size_t page = 0; page < kPages; ++page) {
        auto* from = reinterpret_cast<const Vector*>(src + page * kPage + at);
        // Past the end of the source this does nothing.
        _mm_prefetch(reinterpret_cast<const char*>(from) + kAhead, _MM_HINT_T0);
        _mm_prefetch(reinterpret_cast<const char*>(from + 1) + kAhead, _MM_HINT_T0);
        loaded[page][0] = _mm_loadu_si128(from);
        loaded[page][1] = _mm_loadu_si128(from + 1);
      }
#pragma GCC unroll 4
      for (size_t page = 0; page < kPages; ++page) {
        auto* to = reinterpret_cast<Vector*>(dst + page * kPage + at);
        _mm_stream_si128(to, loaded[page][0]);
        _mm_stream_si128(to + 1, loaded[page][1]);
      }
    }
  }
}

__attribute__((target("avx2"))) void streamAvx2(char* dst, const char* src, size_t groups) {
  using Vector = __m256i;
  for (; groups > 0; --groups, dst += kGroup, src += kGroup) {
    for (size_t at = 0; at < kPage; at += 2 * sizeof(Vector)) {
      Vector loaded[kPages][2];
#pragma GCC unroll 4
      for (size_t page = 0; page < kPages; ++page) {
        auto* from = reinterpret_cast<const Vector*>(src + page * kPage + at);
        // Past the end of the source this does nothing.
        _mm_prefetch(reinterpret_cast<const char*>(from) + kAhead, _MM_HINT_T0);
        _mm_prefetch(reinterpret_cast<const char*>(from + 1) + kAhead, _MM_HINT_T0);
        loaded[page][0] = _mm256_loadu_si256(from);
        loaded[page][1] = _mm256_loadu_si256(from + 1);
      }
#pragma GCC unroll 4
      for (size_t page = 0; page < kPages; ++page) {
        auto* to = reinterpret_cast<Vector*>(dst + page * kPage + at);
        _mm256_stream_si256(to, loaded[page][0]);
        _mm256_stream_si256(to + 1, loaded[page][1]);
      }
    }
  }
}

__attribute__((target("avx512f"))) void streamAvx512(char* dst, const char* src, size_t groups) {
  using Vector = __m512i;
  for (; groups > 0; --groups, dst += kGroup, src += kGroup) {
    for (size_t at = 0; at < kPage; at += 2 * sizeof(Vector)) {
      Vector loaded[kPages][2];
#pragma GCC unroll 4
      for (size_t page = 0; page < kPages; ++page) {
        auto* from = reinterpret_cast<const Vector*>(src + page * kPage + at);
        // Past the end of the source this does nothing.
        _mm_prefetch(reinterpret_cast<const char*>(from) + kAhead, _MM_HINT_T0);
        _mm_prefetch(reinterpret_cast<const char*>(from + 1) + kAhead, _MM_HINT_T0);
        loaded[page][0] = _mm512_loadu_si512(from);
        loaded[page][1] = _mm512_loadu_si512(from + 1);
      }
#pragma GCC unroll 4
      for (size_t page = 0; page < kPages; ++page) {
        auto* to = reinterpret_cast<Vector*>(dst + page * kPage + at);
        _mm512_stream_si512(to, loaded[page][0]);
        _mm512_stream_si512(to + 1, loaded[page][1]);
      }
    }
  }
}

}  // namespace

std::vector<StreamingLoop> streamingLoops() {
  std::vector<StreamingLoop> loops;
  if (__builtin_cpu_supports("avx512f")) loops.push_back({"AVX-512", streamAvx512});
  if (__builtin_cpu_supports("avx2")) loops.push_back({"AVX2", streamAvx2});
  loops.push_back({"SSE2", streamSse2});
  return loops;
}

#else

std::vector<StreamingLoop> streamingLoops() {
  return {};
}

#endif

}  // namespace hmc
