#include "memory/places.h"

#ifdef __x86_64__
#include <immintrin.h>
#endif

#include <algorithm>
#include <bit>

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

template <class Written>
Seen writeEach(std::span<const Block> blocks, const Limits& limits, unsigned shift, Written* to) {
  using Offset = decltype(Written::local);
  Seen seen;
  for (const auto& [local, remote, size] : blocks) {
    seen.offsets |= local | remote;
    seen.above |= local | (limits.local - local) | remote | (limits.remote - remote);
    seen.otherSizes |= size ^ limits.size;
    *to++ = {static_cast<Offset>(local >> shift), static_cast<Offset>(remote >> shift)};
  }
  return seen;
}

#ifdef __x86_64__

constexpr size_t kRow = 8;
// The places of more blocks than this go past the cache: the device reads them from memory as
// quickly, and the list that we read stays in it. Measured on a Xeon beside an H200.
constexpr size_t kPastTheCache = 8192;

__attribute__((target("avx2"))) uint64_t joined(const __m256i& lanes) {
  alignas(32) uint64_t each[4];
  _mm256_store_si256(reinterpret_cast<__m256i*>(each), lanes);
  return each[0] | each[1] | each[2] | each[3];
}

// What was seen, and the limits, four numbers at a time.
struct Lanes {
  __m256i most;  // of local, remote, local, remote
  __m256i offsets;
  __m256i above;
  uint64_t size;
  uint64_t otherSizes;
};

// The places of four blocks.
__attribute__((target("avx2"), always_inline)) inline __m256i placesOf(const Block* at, __m128i by,
                                                                       Lanes& lanes) {
  // Local and remote offset of two blocks each.
  const __m256i a = _mm256_loadu2_m128i(reinterpret_cast<const __m128i*>(at + 1),
                                        reinterpret_cast<const __m128i*>(at));
  const __m256i b = _mm256_loadu2_m128i(reinterpret_cast<const __m128i*>(at + 3),
                                        reinterpret_cast<const __m128i*>(at + 2));
  lanes.offsets = _mm256_or_si256(lanes.offsets, _mm256_or_si256(a, b));
  lanes.above = _mm256_or_si256(lanes.above, _mm256_or_si256(_mm256_sub_epi64(lanes.most, a),
                                                             _mm256_sub_epi64(lanes.most, b)));
  lanes.otherSizes |= (at[0].size ^ lanes.size) | (at[1].size ^ lanes.size) |
                      (at[2].size ^ lanes.size) | (at[3].size ^ lanes.size);
  const __m256 low = _mm256_shuffle_ps(_mm256_castsi256_ps(_mm256_srl_epi64(a, by)),
                                       _mm256_castsi256_ps(_mm256_srl_epi64(b, by)), 0x88);
  // That left the blocks in the order 0, 2, 1, 3.
  return _mm256_permute4x64_epi64(_mm256_castps_si256(low), 0xd8);
}

template <bool PastTheCache>
__attribute__((target("avx2"), always_inline)) inline void put(__m256i* to, __m256i value) {
  if constexpr (PastTheCache) {
    _mm256_stream_si256(to, value);
  } else {
    _mm256_store_si256(to, value);
  }
}

// Eight blocks at a time; there are no others.
template <class Written, bool PastTheCache>
__attribute__((target("avx2"))) Seen writeRows(std::span<const Block> blocks, const Limits& limits,
                                               unsigned shift, Written* places) {
  const __m128i by = _mm_cvtsi32_si128(static_cast<int>(shift));
  const auto local = static_cast<long long>(limits.local);
  const auto remote = static_cast<long long>(limits.remote);
  Lanes lanes{_mm256_setr_epi64x(local, remote, local, remote), _mm256_setzero_si256(),
              _mm256_setzero_si256(), limits.size, 0};
  auto* to = reinterpret_cast<__m256i*>(places);
  for (size_t i = 0; i < blocks.size(); i += kRow) {
    const __m256i first = placesOf(&blocks[i], by, lanes);
    const __m256i second = placesOf(&blocks[i + kRow / 2], by, lanes);
    if constexpr (sizeof(Written) == sizeof(NarrowPlace)) {
      // Packing leaves the halves in the order 0, 2, 1, 3. What does not fit was seen as above.
      put<PastTheCache>(to++, _mm256_permute4x64_epi64(_mm256_packus_epi32(first, second), 0xd8));
    } else {
      put<PastTheCache>(to++, first);
      put<PastTheCache>(to++, second);
    }
  }
  if constexpr (PastTheCache) _mm_sfence();
  return {joined(lanes.offsets), joined(_mm256_or_si256(lanes.above, lanes.offsets)),
          lanes.otherSizes};
}

template <class Written>
Seen writeAll(std::span<const Block> blocks, const Limits& limits, unsigned shift, Written* to) {
  static const bool wide = __builtin_cpu_supports("avx2") != 0;
  if (!wide) return writeEach(blocks, limits, shift, to);
  const size_t rows = blocks.size() - blocks.size() % kRow;
  const auto write = rows > kPastTheCache ? writeRows<Written, true> : writeRows<Written, false>;
  Seen seen = write(blocks.first(rows), limits, shift, to);
  seen.add(writeEach(blocks.subspan(rows), limits, shift, to + rows));
  return seen;
}

#else

template <class Written>
Seen writeAll(std::span<const Block> blocks, const Limits& limits, unsigned shift, Written* to) {
  return writeEach(blocks, limits, shift, to);
}

#endif

// A look at three of them, so that most other lists are not read in vain.
template <class Holds>
bool seems(std::span<const Block> blocks, Holds holds) {
  return holds(blocks.front()) && holds(blocks[blocks.size() / 2]) && holds(blocks.back());
}

}  // namespace

EvenBlocks writePlaces(std::span<const Block> blocks, uint64_t localSize, uint64_t remoteSize,
                       void* to) {
  if (blocks.empty() || blocks.front().size == 0) return {};
  const size_t each = blocks.front().size;
  if (each > localSize || each > remoteSize) return {};
  if (!seems(blocks, [&](const Block& block) { return block.size == each; })) return {};
  const uint64_t last = std::max(localSize, remoteSize) - 1;
  const Limits limits{each, localSize - each, remoteSize - each};
  auto write = [&]<class Written>(Written* places, unsigned shift) -> EvenBlocks {
    const uint64_t within = (uint64_t{1} << shift) - 1;
    auto aligned = [&](const Block& block) {
      return ((block.localOffset | block.remoteOffset) & within) == 0;
    };
    if (!seems(blocks, aligned)) return {};
    const Seen seen = writeAll(blocks, limits, shift, places);
    if (seen.above >> 63 != 0 || seen.otherSizes != 0 || (seen.offsets & within) != 0) return {};
    return {places, each, shift, sizeof(Written) == sizeof(NarrowPlace)};
  };
  const auto coarse = static_cast<unsigned>(std::countr_zero(each));
  if (last >> coarse <= UINT16_MAX) {
    const EvenBlocks narrow = write(static_cast<NarrowPlace*>(to), coarse);
    if (narrow.places) return narrow;
  }
  unsigned shift = 0;
  while (last >> shift > UINT32_MAX) ++shift;
  return write(static_cast<Place*>(to), shift);
}

}  // namespace hmc
