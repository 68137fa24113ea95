#include "transfer/block_sum.h"

#include <cstring>

namespace hmc {

namespace {

// Without a branch, and both sides at once. What is too large leaves a top bit in `large`, what
// passes the end leaves one in `past`.
BlockSum sumOfAny(std::span<const Block> blocks, uint64_t localSize, uint64_t remoteSize) {
  typedef uint64_t Pair __attribute__((vector_size(16)));
  const Pair ends{localSize, remoteSize};
  Pair large{};
  Pair past{};
  Pair bytes{};
  for (const Block& block : blocks) {
    const Pair offsets{block.localOffset, block.remoteOffset};
    const Pair size{block.size, block.size};
    large |= offsets | size;
    past |= ends - (offsets + size);
    bytes += size;
  }
  const uint64_t bits = (large[0] | large[1]) >> 62 | (past[0] | past[1]) >> 63;
  return {bits == 0, bytes[0]};
}

#ifdef __x86_64__

constexpr size_t kRow = 4;  // blocks that are three vectors

bool mayBeAlike(std::span<const Block> blocks, uint64_t localSize, uint64_t remoteSize) {
  const size_t size = blocks.front().size;
  return size == blocks[blocks.size() / 2].size && size == blocks.back().size &&
         size <= localSize && size <= remoteSize;
}

// For blocks of one size, the usual case. Each number has a limit of its own then, whatever stands
// beside it: twice as quick. Not inside also where a block is larger than the first one, which says
// nothing yet. Only whole rows count.
__attribute__((target("avx2"))) BlockSum sumOfAlike(std::span<const Block> blocks,
                                                    uint64_t localSize, uint64_t remoteSize) {
  typedef uint64_t Lanes __attribute__((vector_size(32)));
  static_assert(3 * sizeof(Lanes) == kRow * sizeof(Block));
  const uint64_t size = blocks.front().size;
  const uint64_t local = localSize - size;
  const uint64_t remote = remoteSize - size;
  const Lanes mostA{local, remote, size, local};
  const Lanes mostB{remote, size, local, remote};
  const Lanes mostC{size, local, remote, size};
  Lanes bits{};  // a top bit where a number is above its limit, or so large that nothing can tell
  Lanes sumA{};
  Lanes sumB{};
  Lanes sumC{};
  for (size_t row = 0; row < blocks.size() / kRow; ++row) {
    auto* at = reinterpret_cast<const char*>(&blocks[row * kRow]);
    Lanes a;
    Lanes b;
    Lanes c;
    std::memcpy(&a, at, sizeof(a));
    std::memcpy(&b, at + sizeof(a), sizeof(b));
    std::memcpy(&c, at + sizeof(a) + sizeof(b), sizeof(c));
    bits |= a | (mostA - a) | b | (mostB - b) | c | (mostC - c);
    sumA += a;
    sumB += b;
    sumC += c;
  }
  return {(bits[0] | bits[1] | bits[2] | bits[3]) >> 63 == 0,
          sumA[2] + sumB[1] + sumC[0] + sumC[3]};
}

#endif

}  // namespace

BlockSum sumOf(std::span<const Block> blocks, uint64_t localSize, uint64_t remoteSize) {
#ifdef __x86_64__
  static const bool wide = __builtin_cpu_supports("avx2") != 0;
  if (wide && blocks.size() >= kRow && mayBeAlike(blocks, localSize, remoteSize)) {
    const BlockSum rows = sumOfAlike(blocks, localSize, remoteSize);
    const auto rest = blocks.last(blocks.size() % kRow);
    const BlockSum others = sumOfAny(rest, localSize, remoteSize);
    if (rows.inside) return {others.inside, rows.bytes + others.bytes};
  }
#endif
  return sumOfAny(blocks, localSize, remoteSize);
}

}  // namespace hmc
