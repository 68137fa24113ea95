#include "memory/cuda/even_blocks.h"

#ifdef __x86_64__
#include <immintrin.h>
#endif

#include <algorithm>

namespace hmc::cuda {

namespace {

// These two answer all offsets, joined bit by bit.
uint64_t writeEach(std::span<const Block> blocks, unsigned shift, Place* to) {
  uint64_t bits = 0;
  for (const Block& block : blocks) {
    bits |= block.localOffset | block.remoteOffset;
    *to++ = {static_cast<uint32_t>(block.localOffset >> shift),
             static_cast<uint32_t>(block.remoteOffset >> shift)};
  }
  return bits;
}

#ifdef __x86_64__

constexpr size_t kRow = 4;

// Four blocks at a time; there are no others.
__attribute__((target("avx2"))) uint64_t writeRows(std::span<const Block> blocks, unsigned shift,
                                                   Place* to) {
  const __m128i by = _mm_cvtsi32_si128(static_cast<int>(shift));
  __m256i bits = _mm256_setzero_si256();
  for (size_t i = 0; i < blocks.size(); i += kRow, to += kRow) {
    auto* at = &blocks[i];
    // Local and remote offset of two blocks each.
    const __m256i a = _mm256_loadu2_m128i(reinterpret_cast<const __m128i*>(at + 1),
                                          reinterpret_cast<const __m128i*>(at));
    const __m256i b = _mm256_loadu2_m128i(reinterpret_cast<const __m128i*>(at + 3),
                                          reinterpret_cast<const __m128i*>(at + 2));
    bits = _mm256_or_si256(bits, _mm256_or_si256(a, b));
    const __m256 low = _mm256_shuffle_ps(_mm256_castsi256_ps(_mm256_srl_epi64(a, by)),
                                         _mm256_castsi256_ps(_mm256_srl_epi64(b, by)), 0x88);
    // That left the blocks in the order 0, 2, 1, 3.
    const __m256i places = _mm256_permute4x64_epi64(_mm256_castps_si256(low), 0xd8);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), places);
  }
  alignas(32) uint64_t lanes[4];
  _mm256_store_si256(reinterpret_cast<__m256i*>(lanes), bits);
  return lanes[0] | lanes[1] | lanes[2] | lanes[3];
}

uint64_t writeAll(std::span<const Block> blocks, unsigned shift, Place* to) {
  static const bool wide = __builtin_cpu_supports("avx2") != 0;
  if (!wide) return writeEach(blocks, shift, to);
  const size_t rows = blocks.size() - blocks.size() % kRow;
  return writeRows(blocks.first(rows), shift, to) |
         writeEach(blocks.subspan(rows), shift, to + rows);
}

#else

uint64_t writeAll(std::span<const Block> blocks, unsigned shift, Place* to) {
  return writeEach(blocks, shift, to);
}

#endif

}  // namespace

std::optional<unsigned> writePlaces(const CopyBatch& batch, Place* to) {
  if (batch.each == 0) return std::nullopt;
  const uint64_t last = std::max(batch.to.size, batch.from.size) - 1;
  unsigned shift = 0;
  while (last >> shift > UINT32_MAX) ++shift;
  const uint64_t bits = writeAll(batch.blocks, shift, to);
  const uint64_t within = (uint64_t{1} << shift) - 1;
  if ((bits & within) != 0) return std::nullopt;
  return shift;
}

}  // namespace hmc::cuda
