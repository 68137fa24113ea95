#include "transfer/shape.h"

#include "memory/range_error.h"

namespace hmc {

namespace {

// One past the last byte that the shape touches on a side, saturating instead of wrapping.
uint64_t endOf(uint64_t offset, uint64_t stride, uint64_t count, uint64_t length) {
  uint64_t span = 0;
  uint64_t end = 0;
  if (__builtin_mul_overflow(stride, count - 1, &span) ||
      __builtin_add_overflow(offset, span, &end) || __builtin_add_overflow(end, length, &end)) {
    return UINT64_MAX;
  }
  return end;
}

Status outside(const Shape& shape, const char* what, const char* side, uint64_t offset,
               uint64_t size) {
  const std::string all =
      shape.count == 1 ? what : fmt::format("{} of {} pieces", what, shape.count);
  return rangeError(all.c_str(), shape.length, side, offset, size);
}

}  // namespace

Status checkBounds(const Shape& shape, uint64_t localSize, uint64_t remoteSize, const char* what) {
  if (shape.count == 0) return Status();
  if (endOf(shape.local, shape.localStride, shape.count, shape.length) > localSize) {
    return outside(shape, what, "local ", shape.local, localSize);
  }
  if (endOf(shape.remote, shape.remoteStride, shape.count, shape.length) > remoteSize) {
    return outside(shape, what, "remote ", shape.remote, remoteSize);
  }
  return Status();
}

}  // namespace hmc
