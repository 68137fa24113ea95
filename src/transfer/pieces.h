#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "hmc/block.h"
#include "hmc/status.h"
#include "memory/even_list.h"
#include "memory/region.h"

namespace hmc {

// What a transfer moves: pieces of one length at regular distances, or a list of blocks.
class Pieces {
 public:
  // Blocks of a list that are checked at once: the first ones, before anything moves, and later
  // ones, while a device copies those before. A part costs a launch, so later ones are larger.
  static constexpr size_t kPart = 16384;
  static constexpr size_t kLaterPart = 2 * kPart;

  Pieces(const Strided& strided)  // NOLINT(google-explicit-constructor)
      : strided_(strided), count_(strided.length == 0 ? 0 : strided.count) {}
  // Refers to the caller's list until keep() copies it.
  explicit Pieces(std::span<const Block> list) : list_(list), count_(list.size()) {}
  Pieces(Pieces&&) = default;

  size_t count() const { return count_; }
  Block at(size_t index) const {
    return isList() ? list_[index]
                    : Block{strided_.localOffset + index * strided_.localStride,
                            strided_.remoteOffset + index * strided_.remoteStride, strided_.length};
  }
  bool isList() const { return list_.data() != nullptr; }
  void keep() {
    kept_.assign(list_.begin(), list_.end());
    if (isList()) list_ = kept_;
  }

  // Long lists of blocks of one size are also written down for that device while they are checked.
  void writeDownFor(Backend& device) { device_ = &device; }
  // Ok when every piece lies inside both sides; of a list, the first kPart blocks. The sentence
  // names `what` ("put"), the first number that is wrong and the size that it passes.
  Status check(uint64_t localSize, uint64_t remoteSize, const char* what);
  // The same for the next kLaterPart blocks, and for all that are left.
  Status checkPart();
  Status checkRest();
  // What was checked last.
  struct Part {
    size_t first = 0;
    size_t count = 0;
    uint64_t bytes = 0;
    size_t end() const { return first + count; }
  };
  const Part& checked() const { return checked_; }
  EvenList& even() { return even_; }  // the same part, where it was written down
  std::span<const Block> blocksOf(const Part& part) const {
    return list_.subspan(part.first, part.count);
  }
  // The mean of what was checked last.
  uint64_t typicalSize() const { return checked_.count == 0 ? 0 : checked_.bytes / checked_.count; }

 private:
  bool checkEven(std::span<const Block> blocks);

  Strided strided_;
  std::span<const Block> list_;
  std::vector<Block> kept_;
  size_t count_;
  Part checked_;
  Backend* device_ = nullptr;  // none: nothing is written down
  EvenList even_;
  uint64_t localSize_ = 0;
  uint64_t remoteSize_ = 0;
  const char* what_ = "";
};

// A position in what a transfer moves, piece by piece and never more than `largest` bytes.
class Cursor {
 public:
  explicit Cursor(const Pieces& pieces) : pieces_(&pieces) { load(); }

  bool atEnd() const { return index_ == pieces_->count(); }
  uint64_t local() const { return left_.localOffset; }
  uint64_t remote() const { return left_.remoteOffset; }
  uint64_t left(uint64_t largest) const { return std::min<uint64_t>(left_.size, largest); }
  void advance(uint64_t bytes) {
    left_ = {left_.localOffset + bytes, left_.remoteOffset + bytes, left_.size - bytes};
    if (left_.size == 0) skipTo(index_ + 1);
  }

  // The piece that it is in, of which this is the beginning when atStart().
  size_t index() const { return index_; }
  bool atStart() const { return left_.size == pieces_->at(index_).size; }
  void skipTo(size_t index) {
    index_ = index;
    load();
  }

 private:
  // Empty pieces are passed over.
  void load() {
    for (; !atEnd(); ++index_) {
      left_ = pieces_->at(index_);
      if (left_.size > 0) return;
    }
  }

  const Pieces* pieces_;
  size_t index_ = 0;
  Block left_;  // what remains of the piece
};

}  // namespace hmc
