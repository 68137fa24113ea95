#include "transfer/pieces.h"

#include "memory/range_error.h"
#include "transfer/block_sum.h"

namespace hmc {

namespace {

// Shorter lists reach the device in the arguments of a launch.
constexpr size_t kWorthWritingDown = 129;

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
  const size_t most = checked_.end() == 0 ? kPart : kLaterPart;
  checked_ = {checked_.end(), std::min(most, count_ - checked_.end())};
  const auto blocks = blocksOf(checked_);
  if (checkEven(blocks)) return Status();
  const BlockSum sum = sumOf(blocks, localSize_, remoteSize_);
  checked_.bytes = sum.bytes;
  if (sum.inside) return Status();
  for (const auto& [local, remote, size] : blocks) {
    HMC_TRY(checkOne({local, 0, remote, 0, 1, size}, localSize_, remoteSize_, what_));
  }
  return Status();
}

bool Pieces::checkEven(std::span<const Block> blocks) {
  static_assert(kLaterPart * sizeof(Place) <= kBorrowedListSize);
  even_ = {};
  if (!device_ || blocks.size() < kWorthWritingDown) return false;
  auto memory = borrowBuffer(kBorrowedListSize);
  if (!memory.ok()) return false;
  (*memory)->pinFor(*device_);
  auto* places = static_cast<Place*>((*memory)->region(0).ptr);
  const EvenBlocks even = writePlaces(blocks, localSize_, remoteSize_, places);
  if (!even.places) return false;
  even_ = {*std::move(memory), even};
  checked_.bytes = even.each * blocks.size();
  return true;
}

Status Pieces::checkRest() {
  while (isList() && checked_.end() < count_) HMC_TRY(checkPart());
  return Status();
}

}  // namespace hmc
