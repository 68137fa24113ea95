#pragma once

#include <cstddef>

namespace hmc {

/// A piece of memory that lies at one offset on our side and at another on the peer's.
struct Block {
  size_t localOffset = 0;
  size_t remoteOffset = 0;
  size_t size = 0;
};

/// `count` pieces of `length` bytes, a stride apart on each side.
struct Strided {
  size_t localOffset = 0;
  size_t localStride = 0;
  size_t remoteOffset = 0;
  size_t remoteStride = 0;
  size_t count = 0;
  size_t length = 0;
};

}  // namespace hmc
