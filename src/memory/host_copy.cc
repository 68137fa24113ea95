#include "memory/host_copy.h"

#include <functional>

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

namespace hmc {

namespace host_copy {

#if defined(__x86_64__)

namespace {

constexpr unsigned kErms = 1U << 9;  // in ebx of cpuid leaf 7

bool hasFastStringCopy() {
  unsigned a = 0;
  unsigned b = 0;
  unsigned c = 0;
  unsigned d = 0;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (b & kErms) != 0;
}

bool isMadeByAmd() {
  __builtin_cpu_init();
  return __builtin_cpu_is("amd") != 0;
}

constexpr size_t kPage = 4096;
constexpr size_t kPages = 4;
static_assert(kStreamingGroup == kPages * kPage);
constexpr ptrdiff_t kAhead = 512;

// A load waits for a store before it whose address differs by whole pages: non-temporal stores take
// five times as long where the destination is a little further into its page than the source.
// Downwards, every load lies before the stores that are on their way.
bool goesDown(const char* dst, const char* src) {
  constexpr uintptr_t kOnTheirWay = 256;
  const auto distance =
      (reinterpret_cast<uintptr_t>(dst) - reinterpret_cast<uintptr_t>(src)) % kPage;
  return distance - 1 < kOnTheirWay;
}

// Non-temporal stores do not read the destination from memory before they overwrite it, and do not
// throw out of the cache what others keep there. Four pages are copied side by side, a little of
// each in turn, all loads before all stores: one stream alone leaves the memory channels idle.
// Prefetching past an end of the source does nothing. A macro, because a function for one
// instruction set cannot be made from a template for all.
#define HMC_STREAMING_LOOP(name, instructions, Vector, load, stream)                           \
  __attribute__((target(instructions))) void name(char* dst, const char* src, size_t groups) { \
    const bool down = goesDown(dst, src);                                                      \
    const ptrdiff_t ahead = down ? -kAhead : kAhead;                                           \
    for (; groups > 0; --groups, dst += kStreamingGroup, src += kStreamingGroup) {             \
      for (size_t done = 0; done < kPage; done += 2 * sizeof(Vector)) {                        \
        const size_t at = down ? kPage - 2 * sizeof(Vector) - done : done;                     \
        Vector loaded[kPages][2];                                                              \
        _Pragma("GCC unroll 4") for (size_t page = 0; page < kPages; ++page) {                 \
          auto* from = reinterpret_cast<const Vector*>(src + page * kPage + at);               \
          _mm_prefetch(reinterpret_cast<const char*>(from) + ahead, _MM_HINT_T0);              \
          _mm_prefetch(reinterpret_cast<const char*>(from + 1) + ahead, _MM_HINT_T0);          \
          loaded[page][0] = load(from);                                                        \
          loaded[page][1] = load(from + 1);                                                    \
        }                                                                                      \
        _Pragma("GCC unroll 4") for (size_t page = 0; page < kPages; ++page) {                 \
          auto* to = reinterpret_cast<Vector*>(dst + page * kPage + at);                       \
          stream(to, loaded[page][0]);                                                         \
          stream(to + 1, loaded[page][1]);                                                     \
        }                                                                                      \
      }                                                                                        \
    }                                                                                          \
  }
HMC_STREAMING_LOOP(streamSse2, "sse2", __m128i, _mm_loadu_si128, _mm_stream_si128)
HMC_STREAMING_LOOP(streamAvx2, "avx2", __m256i, _mm256_loadu_si256, _mm256_stream_si256)
HMC_STREAMING_LOOP(streamAvx512, "avx512f", __m512i, _mm512_loadu_si512, _mm512_stream_si512)
#undef HMC_STREAMING_LOOP

}  // namespace

const bool kHasFastStringCopy = hasFastStringCopy();
const bool kStringCopyMayCrawl = isMadeByAmd();

// Lines of the destination, whose first and last may be written twice.
void copyLines(char* dst, const char* src, size_t size) {
  constexpr size_t kLine = 64;
  std::memcpy(dst, src, kLine);
  for (size_t at = kLine - reinterpret_cast<uintptr_t>(dst) % kLine; at < size - kLine;
       at += kLine) {
    std::memcpy(dst + at, src + at, kLine);
    // Else the compiler makes one memcpy() of all of them, which is what we are avoiding.
    asm volatile("" : : : "memory");
  }
  std::memcpy(dst + size - kLine, src + size - kLine, kLine);
}

#endif

std::vector<StreamingLoop> streamingLoops() {
  std::vector<StreamingLoop> loops;
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) loops.push_back({"AVX-512", streamAvx512});
  if (__builtin_cpu_supports("avx2")) loops.push_back({"AVX2", streamAvx2});
  loops.push_back({"SSE2", streamSse2});
#endif
  return loops;
}

namespace {

// How many bytes from the front were copied; the caller does the rest, and the fence.
size_t copyStreaming(char* dst, const char* src, size_t size) {
  static const auto kWidest = [] {
    const auto loops = streamingLoops();
    return loops.empty() ? nullptr : loops.front().copy;
  }();
  const size_t head = -reinterpret_cast<uintptr_t>(dst) % 64;
  if (!kWidest || size < head + kStreamingGroup) return 0;
  std::memcpy(dst, src, head);
  const size_t groups = (size - head) / kStreamingGroup;
  kWidest(dst + head, src + head, groups);
  return head + groups * kStreamingGroup;
}

}  // namespace

}  // namespace host_copy

void StreamedCopies::copy(void* dst, const void* src, size_t size) {
  auto* to = static_cast<char*>(dst);
  auto* from = static_cast<const char*>(src);
  const size_t done = host_copy::copyStreaming(to, from, size);
  pending_ = pending_ || done > 0;
  host_copy::copyCached(to + done, from + done, size - done);
}

void StreamedCopies::finish() {
#if defined(__x86_64__)
  if (pending_) _mm_sfence();
#endif
  pending_ = false;
}

void moveHost(void* dst, const void* src, size_t size) {
  std::less<const void*> before;
  const void* dstEnd = static_cast<char*>(dst) + size;
  const void* srcEnd = static_cast<const char*>(src) + size;
  if (before(dst, srcEnd) && before(src, dstEnd)) {
    std::memmove(dst, src, size);
  } else {
    copyHost(dst, src, size);
  }
}

}  // namespace hmc
