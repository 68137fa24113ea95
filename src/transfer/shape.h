#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "hmc/status.h"
#include "memory/region.h"

namespace hmc {

// `count` pieces of `length` bytes at regular distances: one block is a Shape of count 1.
struct Shape {
  uint64_t local = 0;
  uint64_t localStride = 0;
  uint64_t remote = 0;
  uint64_t remoteStride = 0;
  uint64_t count = 0;
  uint64_t length = 0;
};

// Ok when every piece lies inside both sides; the sentence names `what` ("put to peer x"), the
// first number that is wrong and the size that it passes.
Status checkBounds(const Shape& shape, uint64_t localSize, uint64_t remoteSize, const char* what);

// The same answer for one piece, without the sentence.
inline bool fitsAsOne(const Shape& shape, uint64_t localSize, uint64_t remoteSize) {
  return shape.count == 1 && fits(shape.local, shape.length, localSize) &&
         fits(shape.remote, shape.length, remoteSize);
}

// A position in a list of shapes, in order, piece by piece and never more than `largest` bytes.
class Cursor {
 public:
  explicit Cursor(const std::vector<Shape>& shapes) : shapes_(&shapes) { skipEmpty(); }

  bool atEnd() const { return shape_ == shapes_->size(); }
  uint64_t local() const { return current().local + index_ * current().localStride + done_; }
  uint64_t remote() const { return current().remote + index_ * current().remoteStride + done_; }
  uint64_t left(uint64_t largest) const { return std::min(current().length - done_, largest); }
  void advance(uint64_t bytes) {
    done_ += bytes;
    if (done_ < current().length) return;
    done_ = 0;
    if (++index_ < current().count) return;
    index_ = 0;
    ++shape_;
    skipEmpty();
  }

 private:
  const Shape& current() const { return (*shapes_)[shape_]; }
  void skipEmpty() {
    while (!atEnd() && (current().count == 0 || current().length == 0)) ++shape_;
  }

  const std::vector<Shape>* shapes_;
  size_t shape_ = 0;
  uint64_t index_ = 0;  // piece of the shape
  uint64_t done_ = 0;   // bytes of the piece
};

}  // namespace hmc
