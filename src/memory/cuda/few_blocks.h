#pragma once

#include <cstddef>
#include <cstdint>

namespace hmc::cuda {

// A list that travels in the arguments of a launch, as in copy_blocks.cu.
constexpr size_t kFew = 128;  // blocks of memory
constexpr size_t kParts = 640;
struct FewBlock {
  uint64_t local;
  uint64_t remote;
  uint32_t size;
  uint32_t firstPart;
};
struct Few {
  FewBlock list[kFew];
  uint8_t blockOf[kParts];  // by part
};

}  // namespace hmc::cuda
