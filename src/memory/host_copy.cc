#include <cstdint>
#include <cstring>

#include "memory/copy.h"
#include "memory/streaming.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace hmc {

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
  if (!kLoop.copy) return 0;
  size_t head = -reinterpret_cast<uintptr_t>(dst) % 64;
  std::memcpy(dst, src, head);
  size_t groups = (size - head) / kStreamingGroup;
  kLoop.copy(dst + head, src + head, groups);
  fence();
  return head + groups * kStreamingGroup;
}

}  // namespace

void copyHost(void* dst, const void* src, size_t size) {
  auto* to = static_cast<char*>(dst);
  auto* from = static_cast<const char*>(src);
  size_t done = size < kStreamingThreshold ? 0 : copyStreaming(to, from, size);
  std::memcpy(to + done, from + done, size - done);
}

}  // namespace hmc
