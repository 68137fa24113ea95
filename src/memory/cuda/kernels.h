#pragma once

#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "memory/cuda/event.h"

namespace hmc::cuda {

// Copies lists of pieces by a kernel of ours, one launch for a whole list, where the copy engine
// would take microseconds for each piece. For one device, in its primary context. Safe from any
// thread.
class CopyKernel {
 public:
  CopyKernel(const Driver& driver, Words& words, CudaDevice& device)
      : driver_(driver), words_(words), device_(device) {}

  // Whether the kernel is quicker for these than the copy engine.
  static bool isFor(std::span<const CopyPiece> pieces);
  // The device reaches all of their memory. Its context is current.
  Status launch(std::span<const CopyPiece> pieces, CuStream stream);

 private:
  // A list on its way. It comes back into use when the device has read it.
  struct List {
    CopyPiece* host = nullptr;
    CuPointer onDevice = 0;
    size_t capacity = 0;
    Word* word = nullptr;
  };

  Status prepare();
  Status launchList(std::span<const CopyPiece> pieces, CuStream stream, unsigned width);
  Status run(CuFunction function, void** arguments, size_t count, unsigned width,
             CuStream stream) const;
  Result<List> takeList(size_t count);

  const Driver& driver_;
  Words& words_;
  CudaDevice& device_;
  std::mutex mutex_;  // guards the members below
  CuFunction list_ = nullptr;
  CuFunction few_ = nullptr;
  unsigned mostBlocks_ = 0;
  std::vector<List> lists_;
};

}  // namespace hmc::cuda
