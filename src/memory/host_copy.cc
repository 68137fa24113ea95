#include <cstdint>
#include <cstring>

#include "memory/copy.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace hmc {

namespace {

#if defined(__x86_64__)

// The three loops differ in the width of a store only. They take a 64-byte-aligned destination and
// whole blocks, and leave the fence to the caller. Non-temporal stores do not read the destination
// from memory before they overwrite it, and do not throw out of the cache what others keep there.
constexpr size_t kBlock = 256;

using Loop = void (*)(char* dst, const char* src, size_t blocks);

__attribute__((target("sse2"))) void streamSse2(char* dst, const char* src, size_t blocks) {
  for (; blocks > 0; --blocks, dst += kBlock, src += kBlock) {
    for (size_t i = 0; i < kBlock; i += 64) {
      auto* from = reinterpret_cast<const __m128i*>(src + i);
      auto* to = reinterpret_cast<__m128i*>(dst + i);
      __m128i a = _mm_loadu_si128(from);
      __m128i b = _mm_loadu_si128(from + 1);
      __m128i c = _mm_loadu_si128(from + 2);
      __m128i d = _mm_loadu_si128(from + 3);
      _mm_stream_si128(to, a);
      _mm_stream_si128(to + 1, b);
      _mm_stream_si128(to + 2, c);
      _mm_stream_si128(to + 3, d);
    }
  }
}

__attribute__((target("avx2"))) void streamAvx2(char* dst, const char* src, size_t blocks) {
  for (; blocks > 0; --blocks, dst += kBlock, src += kBlock) {
    for (size_t i = 0; i < kBlock; i += 128) {
      auto* from = reinterpret_cast<const __m256i*>(src + i);
      auto* to = reinterpret_cast<__m256i*>(dst + i);
      __m256i a = _mm256_loadu_si256(from);
      __m256i b = _mm256_loadu_si256(from + 1);
      __m256i c = _mm256_loadu_si256(from + 2);
      __m256i d = _mm256_loadu_si256(from + 3);
      _mm256_stream_si256(to, a);
      _mm256_stream_si256(to + 1, b);
      _mm256_stream_si256(to + 2, c);
      _mm256_stream_si256(to + 3, d);
    }
  }
}

__attribute__((target("avx512f"))) void streamAvx512(char* dst, const char* src, size_t blocks) {
  for (; blocks > 0; --blocks, dst += kBlock, src += kBlock) {
    auto* from = reinterpret_cast<const __m512i*>(src);
    auto* to = reinterpret_cast<__m512i*>(dst);
    __m512i a = _mm512_loadu_si512(from);
    __m512i b = _mm512_loadu_si512(from + 1);
    __m512i c = _mm512_loadu_si512(from + 2);
    __m512i d = _mm512_loadu_si512(from + 3);
    _mm512_stream_si512(to, a);
    _mm512_stream_si512(to + 1, b);
    _mm512_stream_si512(to + 2, c);
    _mm512_stream_si512(to + 3, d);
  }
}

Loop widestLoop() {
  if (__builtin_cpu_supports("avx512f")) return streamAvx512;
  if (__builtin_cpu_supports("avx2")) return streamAvx2;
  return streamSse2;
}

void copyStreaming(char* dst, const char* src, size_t size) {
  static const Loop kLoop = widestLoop();
  size_t head = -reinterpret_cast<uintptr_t>(dst) % 64;
  std::memcpy(dst, src, head);
  size_t blocks = (size - head) / kBlock;
  kLoop(dst + head, src + head, blocks);
  // Non-temporal stores are not ordered with the flag that tells a peer the bytes are there.
  _mm_sfence();
  size_t done = head + blocks * kBlock;
  std::memcpy(dst + done, src + done, size - done);
}

#else

void copyStreaming(char* dst, const char* src, size_t size) {
  std::memcpy(dst, src, size);
}

#endif

}  // namespace

void copyHost(void* dst, const void* src, size_t size) {
  if (size < kStreamingThreshold) {
    std::memcpy(dst, src, size);
  } else {
    copyStreaming(static_cast<char*>(dst), static_cast<const char*>(src), size);
  }
}

}  // namespace hmc
