#pragma once

#include "memory/copy.h"

namespace hmc {

// Copies between places on the host, one piece after the other. Pieces whose destinations follow
// each other are something large that came in parts: from kStreamingThreshold on they are written
// with non-temporal stores, as copyHost() would have written the whole. One thread at a time.
class RowCopy {
 public:
  void copy(void* dst, const void* src, size_t size) {
    length_ = (dst == end_ ? length_ : 0) + size;
    end_ = static_cast<char*>(dst) + size;
    length_ < kStreamingThreshold ? copyHost(dst, src, size) : streamHost(dst, src, size);
  }

 private:
  const void* end_ = nullptr;  // of the last piece
  size_t length_ = 0;          // of the row that it belongs to
};

}  // namespace hmc
