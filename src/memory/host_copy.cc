#include <cstdint>
#include <cstring>

#include "memory/copy.h"
#include "memory/quick_copy.h"
#include "memory/streaming.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

namespace hmc {

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
}  // namespace
const bool kHasFastStringCopy = hasFastStringCopy();
#endif

namespace {

// Non-temporal stores are not ordered with the flag that tells a peer the bytes are there.
void fence() {
#if defined(__x86_64__)
  _mm_sfence();
#endif
}

StreamingLoop widestLoop() {
  auto loops = streamingLoops();
  return loops.empty() ? StreamingLoop{"none", nullptr} : loops.front();
}

// How many bytes from the front were copied; the caller does the rest.
size_t copyStreaming(char* dst, const char* src, size_t size) {
  static const StreamingLoop kLoop = widestLoop();
  const size_t head = -reinterpret_cast<uintptr_t>(dst) % 64;
  if (!kLoop.copy || size < head + kStreamingGroup) return 0;
  std::memcpy(dst, src, head);
  const size_t groups = (size - head) / kStreamingGroup;
  kLoop.copy(dst + head, src + head, groups);
  fence();
  return head + groups * kStreamingGroup;
}

}  // namespace

void copyHost(void* dst, const void* src, size_t size) {
  if (size >= kStreamingThreshold) return streamHost(dst, src, size);
  std::memcpy(dst, src, size);
}

void streamHost(void* dst, const void* src, size_t size) {
  auto* to = static_cast<char*>(dst);
  auto* from = static_cast<const char*>(src);
  const size_t done = copyStreaming(to, from, size);
  std::memcpy(to + done, from + done, size - done);
}

}  // namespace hmc
