#include "transfer/pieces.h"

#include "memory/range_error.h"

namespace hmc {

namespace {

// One past the last byte that the pieces touch on a side, saturating instead of wrapping.
uint64_t endOf(uint64_t offset, uint64_t stride, uint64_t count, uint64_t length) {
  uint64_t span = 0;
  uint64_t end = 0;
  if (__builtin_mul_overflow(stride, count - 1, &span) ||
      __builtin_add_overflow(offset, span, &end) || __builtin_add_overflow(end, length, &end)) {
    return UINT64_MAX;
  }
  return end;
}

Status outside(const Strided& pieces, const char* what, const char* side, uint64_t offset,
               uint64_t size) {
  const std::string all =
      pieces.count == 1 ? what : fmt::format("{} of {} pieces", what, pieces.count);
  return rangeError(all.c_str(), pieces.length, side, offset, size);
}

Status checkOne(const Strided& pieces, uint64_t localSize, uint64_t remoteSize, const char* what) {
  if (pieces.count == 0) return Status();
  if (endOf(pieces.localOffset, pieces.localStride, pieces.count, pieces.length) > localSize) {
    return outside(pieces, what, "local ", pieces.localOffset, localSize);
  }
  if (endOf(pieces.remoteOffset, pieces.remoteStride, pieces.count, pieces.length) > remoteSize) {
    return outside(pieces, what, "remote ", pieces.remoteOffset, remoteSize);
  }
  return Status();
}

struct Sum {
  bool inside;
  uint64_t bytes;
};

// Without a branch, and both sides at once: most of the time that a long list takes is spent here.
// What is too large leaves a top bit in `large`, what passes the end leaves one in `past`.
Sum sumOf(std::span<const Block> blocks, uint64_t localSize, uint64_t remoteSize) {
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

}  // namespace

Status Pieces::check(uint64_t localSize, uint64_t remoteSize, const char* what) {
  localSize_ = localSize;
  remoteSize_ = remoteSize;
  what_ = what;
  if (isList()) return checkPart();
  checked_ = {0, count_, count_ * strided_.length};
  return checkOne(strided_, localSize, remoteSize, what);
}

Status Pieces::checkPart() {
  checked_ = {checked_.end(), std::min(kPart, count_ - checked_.end())};
  const auto blocks = blocksOf(checked_);
  const Sum sum = sumOf(blocks, localSize_, remoteSize_);
  checked_.bytes = sum.bytes;
  if (sum.inside) return Status();
  for (const auto& [local, remote, size] : blocks) {
    HMC_TRY(checkOne({local, 0, remote, 0, 1, size}, localSize_, remoteSize_, what_));
  }
  return Status();
}

Status Pieces::checkRest() {
  while (isList() && checked_.end() < count_) HMC_TRY(checkPart());
  return Status();
}

}  // namespace hmc
