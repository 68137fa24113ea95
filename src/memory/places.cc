#include "memory/places.h"

#ifdef __x86_64__
#include <immintrin.h>
#endif

#include <algorithm>

namespace hmc {

namespace {

// What every block of a list must keep to.
struct Limits {
  uint64_t size;
  uint64_t local;   // the largest offset
  uint64_t remote;  // the same
};

// What was seen of a list. `above` has its top bit set where an offset is above its limit, or so
// large that nothing can tell.
struct Seen {
  uint64_t offsets = 0;  // joined bit by bit, as the others are
  uint64_t above = 0;
  uint64_t otherSizes = 0;

  void add(const Seen& other) {
    offsets |= other.offsets;
    above |= other.above;
    otherSizes |= other.otherSizes;
  }
};

Seen writeEach(std::span<const Block> blocks, const Limits& limits, unsigned shift, Place* to) {
  Seen seen;
  for (const auto& [local, remote, size] : blocks) {
    seen.offsets |= local | remote;
    seen.above |= local | (limits.local - local) | remote | (limits.remote - remote);
    seen.otherSizes |= size ^ limits.size;
    *to++ = {static_cast<uint32_t>(local >> shift), static_cast<uint32_t>(remote >> shift)};
  }
  return seen;
}

#ifdef __x86_64__

constexpr size_t kRow = 4;
// The places of more blocks than this go past the cache: the device reads them from memory as
// quickly, and the list that we read stays in it. Measured on a Xeon beside an H200.
constexpr size_t kPastTheCache = 8192;

__attribute__((target("avx2"))) uint64_t joined(const __m256i& lanes) {
  alignas(32) uint64_t each[4];
  _mm256_store_si256(reinterpret_cast<__m256i*>(each), lanes);
  return each[0] | each[1] | each[2] | each[3];
}

// Four blocks at a time; there are no others.
template <bool PastTheCache>
__attribute__((target("avx2"))) Seen writeRows(std::span<const Block> blocks, const Limits& limits,
                                               unsigned shift, Place* to) {
  const __m128i by = _mm_cvtsi32_si128(static_cast<int>(shift));
  const auto local = static_cast<long long>(limits.local);
  const auto remote = static_cast<long long>(limits.remote);
  const __m256i most = _mm256_setr_epi64x(local, remote, local, remote);
  __m256i offsets = _mm256_setzero_si256();
  __m256i above = _mm256_setzero_si256();
  uint64_t otherSizes = 0;
  for (size_t i = 0; i < blocks.size(); i += kRow, to += kRow) {
    auto* at = &blocks[i];
    // Local and remote offset of two blocks each.
    const __m256i a = _mm256_loadu2_m128i(reinterpret_cast<const __m128i*>(at + 1),
                                          reinterpret_cast<const __m128i*>(at));
    const __m256i b = _mm256_loadu2_m128i(reinterpret_cast<const __m128i*>(at + 3),
                                          reinterpret_cast<const __m128i*>(at + 2));
    offsets = _mm256_or_si256(offsets, _mm256_or_si256(a, b));
    above = _mm256_or_si256(above,
                            _mm256_or_si256(_mm256_sub_epi64(most, a), _mm256_sub_epi64(most, b)));
    otherSizes |= (at[0].size ^ limits.size) | (at[1].size ^ limits.size) |
                  (at[2].size ^ limits.size) | (at[3].size ^ limits.size);
    const __m256 low = _mm256_shuffle_ps(_mm256_castsi256_ps(_mm256_srl_epi64(a, by)),
                                         _mm256_castsi256_ps(_mm256_srl_epi64(b, by)), 0x88);
    // That left the blocks in the order 0, 2, 1, 3.
    const __m256i places = _mm256_permute4x64_epi64(_mm256_castps_si256(low), 0xd8);
    if constexpr (PastTheCache) {
      _mm256_stream_si256(reinterpret_cast<__m256i*>(to), places);
    } else {
      _mm256_store_si256(reinterpret_cast<__m256i*>(to), places);
    }
  }
  if constexpr (PastTheCache) _mm_sfence();
  return {joined(offsets), joined(_mm256_or_si256(above, offsets)), otherSizes};
}

Seen writeAll(std::span<const Block> blocks, const Limits& limits, unsigned shift, Place* to) {
  static const bool wide = __builtin_cpu_supports("avx2") != 0;
  if (!wide) return writeEach(blocks, limits, shift, to);
  const size_t rows = blocks.size() - blocks.size() % kRow;
  const auto write = rows > kPastTheCache ? writeRows<true> : writeRows<false>;
  Seen seen = write(blocks.first(rows), limits, shift, to);
  seen.add(writeEach(blocks.subspan(rows), limits, shift, to + rows));
  return seen;
}

#else

Seen writeAll(std::span<const Block> blocks, const Limits& limits, unsigned shift, Place* to) {
  return writeEach(blocks, limits, shift, to);
}

#endif

// A look at three of them, so that most other lists are not read in vain.
bool mayBeEven(std::span<const Block> blocks) {
  if (blocks.empty()) return false;
  const size_t size = blocks.front().size;
  return size != 0 && size == blocks[blocks.size() / 2].size && size == blocks.back().size;
}

}  // namespace

EvenBlocks writePlaces(std::span<const Block> blocks, uint64_t localSize, uint64_t remoteSize,
                       Place* to) {
  if (!mayBeEven(blocks)) return {};
  const size_t each = blocks.front().size;
  if (each > localSize || each > remoteSize) return {};
  unsigned shift = 0;
  while ((std::max(localSize, remoteSize) - 1) >> shift > UINT32_MAX) ++shift;
  const Seen seen = writeAll(blocks, {each, localSize - each, remoteSize - each}, shift, to);
  const uint64_t within = (uint64_t{1} << shift) - 1;
  if (seen.above >> 63 != 0 || seen.otherSizes != 0 || (seen.offsets & within) != 0) return {};
  return {to, each, shift};
}

}  // namespace hmc
