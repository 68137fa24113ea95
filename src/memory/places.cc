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

constexpr size_t kWideRow = 8;  // blocks that are three vectors of AVX-512
// The places of a row are one line, so the processor fetches the list too late by itself.
constexpr size_t kFetchedAhead = 6 * kWideRow;

// Numbers of a row of blocks, joined over all rows: every third one is a size.
struct RowSum {
  alignas(64) uint64_t all[3 * kWideRow];   // by and
  alignas(64) uint64_t some[3 * kWideRow];  // by or

  Seen seen(uint64_t size, uint64_t above) const {
    Seen seen{0, above, 0};
    for (size_t i = 0; i < 3 * kWideRow; ++i) {
      if (i % 3 == 2) {
        seen.otherSizes |= (all[i] ^ size) | (some[i] ^ size);
      } else {
        seen.offsets |= some[i];
      }
    }
    return seen;
  }
};

// Eight blocks at a time; there are no others. Half the time of the four of AVX2: each number has a
// limit of its own, whatever stands beside it.
template <bool PastTheCache>
__attribute__((target("avx512f"))) Seen writeWideRows(std::span<const Block> blocks,
                                                      const Limits& limits, unsigned shift,
                                                      Place* to) {
  const auto l = static_cast<long long>(limits.local);
  const auto r = static_cast<long long>(limits.remote);
  const auto s = static_cast<long long>(limits.size);
  const __m512i mostA = _mm512_setr_epi64(l, r, s, l, r, s, l, r);
  const __m512i mostB = _mm512_setr_epi64(s, l, r, s, l, r, s, l);
  const __m512i mostC = _mm512_setr_epi64(r, s, l, r, s, l, r, s);
  // The lower halves of all offsets of the first two vectors, then of these and the third.
  const __m512i ofAB = _mm512_setr_epi32(0, 2, 6, 8, 12, 14, 18, 20, 24, 26, 30, 0, 0, 0, 0, 0);
  const __m512i ofABC = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 16, 20, 22, 26, 28);
  const __m128i by = _mm_cvtsi32_si128(static_cast<int>(shift));
  __m512i above = _mm512_setzero_si512();
  __m512i someA = above;
  __m512i someB = above;
  __m512i someC = above;
  __m512i allA = _mm512_set1_epi64(-1);
  __m512i allB = allA;
  __m512i allC = allA;
  for (size_t i = 0; i < blocks.size(); i += kWideRow, to += kWideRow) {
    auto* at = reinterpret_cast<const char*>(&blocks[i]);
    for (size_t line = 0; line < 3; ++line)
      _mm_prefetch(at + kFetchedAhead * sizeof(Block) + line * 64, _MM_HINT_T0);
    const __m512i a = _mm512_loadu_si512(at);
    const __m512i b = _mm512_loadu_si512(at + 64);
    const __m512i c = _mm512_loadu_si512(at + 128);
    constexpr int kOr = 0xfe;  // of three
    above = _mm512_ternarylogic_epi64(above, a, _mm512_sub_epi64(mostA, a), kOr);
    above = _mm512_ternarylogic_epi64(above, b, _mm512_sub_epi64(mostB, b), kOr);
    above = _mm512_ternarylogic_epi64(above, c, _mm512_sub_epi64(mostC, c), kOr);
    someA = _mm512_or_si512(someA, a);
    someB = _mm512_or_si512(someB, b);
    someC = _mm512_or_si512(someC, c);
    allA = _mm512_and_si512(allA, a);
    allB = _mm512_and_si512(allB, b);
    allC = _mm512_and_si512(allC, c);
    const __m512i ab = _mm512_permutex2var_epi32(_mm512_srl_epi64(a, by), ofAB,  //
                                                 _mm512_srl_epi64(b, by));
    const __m512i places = _mm512_permutex2var_epi32(ab, ofABC, _mm512_srl_epi64(c, by));
    if constexpr (PastTheCache) {
      _mm512_stream_si512(reinterpret_cast<__m512i*>(to), places);
    } else {
      _mm512_store_si512(to, places);
    }
  }
  if constexpr (PastTheCache) _mm_sfence();
  RowSum sum;
  _mm512_store_si512(sum.all, allA);
  _mm512_store_si512(sum.all + 8, allB);
  _mm512_store_si512(sum.all + 16, allC);
  _mm512_store_si512(sum.some, someA);
  _mm512_store_si512(sum.some + 8, someB);
  _mm512_store_si512(sum.some + 16, someC);
  alignas(64) uint64_t each[8];
  _mm512_store_si512(each, above);
  uint64_t joinedAbove = 0;
  for (uint64_t one : each) joinedAbove |= one;
  return sum.seen(limits.size, joinedAbove);
}

Seen writeAll(std::span<const Block> blocks, const Limits& limits, unsigned shift, Place* to,
              size_t row) {
  if (row == 1 || blocks.size() < row) return writeEach(blocks, limits, shift, to);
  const size_t rows = blocks.size() - blocks.size() % row;
  const bool past = rows > kPastTheCache;
  const auto narrow = past ? writeRows<true> : writeRows<false>;
  const auto wide = past ? writeWideRows<true> : writeWideRows<false>;
  const auto write = row == kWideRow ? wide : narrow;
  Seen seen = write(blocks.first(rows), limits, shift, to);
  seen.add(writeEach(blocks.subspan(rows), limits, shift, to + rows));
  return seen;
}

#else

Seen writeAll(std::span<const Block> blocks, const Limits& limits, unsigned shift, Place* to,
              size_t /*row*/) {
  return writeEach(blocks, limits, shift, to);
}

#endif

// A look at three of them, so that most other lists are not read in vain.
bool mayBeEven(std::span<const Block> blocks) {
  if (blocks.empty()) return false;
  const size_t size = blocks.front().size;
  return size != 0 && size == blocks[blocks.size() / 2].size && size == blocks.back().size;
}

// AVX-512 only where VBMI comes with it: processors before those slow down for some microseconds
// when they begin to use it.
size_t findMostAtOnce() {
#ifdef __x86_64__
  if (__builtin_cpu_supports("avx512vbmi") != 0) return kWideRow;
  if (__builtin_cpu_supports("avx2") != 0) return kRow;
#endif
  return 1;
}

}  // namespace

size_t mostPlacesAtOnce() {
  static const size_t most = findMostAtOnce();
  return most;
}

EvenBlocks writePlaces(std::span<const Block> blocks, uint64_t localSize, uint64_t remoteSize,
                       Place* to, size_t atOnce) {
  if (!mayBeEven(blocks)) return {};
  const size_t each = blocks.front().size;
  if (each > localSize || each > remoteSize) return {};
  unsigned shift = 0;
  while ((std::max(localSize, remoteSize) - 1) >> shift > UINT32_MAX) ++shift;
  const Seen seen =
      writeAll(blocks, {each, localSize - each, remoteSize - each}, shift, to, atOnce);
  const uint64_t within = (uint64_t{1} << shift) - 1;
  if (seen.above >> 63 != 0 || seen.otherSizes != 0 || (seen.offsets & within) != 0) return {};
  return {to, each, shift};
}

}  // namespace hmc
