#include "transfer/slot_blocks.h"

namespace hmc {

namespace {

void append(std::vector<Block>& list, const Block& block) {
  if (!list.empty()) {
    Block& last = list.back();
    if (last.localOffset + last.size == block.localOffset &&
        last.remoteOffset + last.size == block.remoteOffset) {
      last.size += block.size;
      return;
    }
  }
  list.push_back(block);
}

}  // namespace

void SlotBlocks::take(Cursor& next, size_t slotSize) {
  near_.clear();
  far_.clear();
  bytes_ = 0;
  while (!next.atEnd() && bytes_ < slotSize && near_.size() < kMost && far_.size() < kMost) {
    const size_t size = next.left(slotSize - bytes_);
    append(near_, {next.local(), bytes_, size});
    append(far_, {bytes_, next.remote(), size});
    bytes_ += size;
    next.advance(size);
  }
}

}  // namespace hmc
