#pragma once

#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "memory/cuda/event.h"

namespace hmc::cuda {

// Copies lists of blocks by a kernel of ours, one launch for a whole list, where the copy engine
// would take microseconds for each block. For one device, in its primary context. Safe from any
// thread.
class CopyKernel {
 public:
  CopyKernel(const Driver& driver, Words& words, CudaDevice& device)
      : driver_(driver), words_(words), device_(device) {}

  // Whether the kernel is quicker for these than the copy engine.
  static bool isFor(const CopyBatch& batch);
  // The device reaches both memories, and batch.even where `readsEven`. Its context is current.
  Status launch(const CopyBatch& batch, CuStream stream, bool readsEven);

 private:
  // A copy of a list on its way. It comes back into use when the device has read it.
  struct List {
    Block* host = nullptr;
    size_t capacity = 0;
    Word* word = nullptr;
  };

  Status prepare();
  // As in copy_blocks.cu: each block of threads gets `each` blocks of memory, and `width` of its
  // threads work on one.
  struct Shares {
    unsigned count;  // blocks of memory
    unsigned width;
    unsigned each;
  };
  struct Grid {
    Shares shares;
    unsigned blocks;  // of threads
  };
  // Blocks of threads that work at once for such a batch.
  unsigned mostBlocks(const CopyBatch& batch) const;
  Grid gridFor(const CopyBatch& batch) const;
  Status launchFew(const CopyBatch& batch, CuStream stream) const;
  Status launchEven(const CopyBatch& batch, CuStream stream) const;
  Status launchList(const CopyBatch& batch, CuStream stream);
  Status run(CuFunction function, void** arguments, unsigned blocks, unsigned threads,
             CuStream stream) const;
  Result<List> takeList(size_t count);

  const Driver& driver_;
  Words& words_;
  CudaDevice& device_;
  std::mutex mutex_;  // guards the members below
  CuFunction list_ = nullptr;
  CuFunction even_ = nullptr;
  CuFunction few_ = nullptr;
  unsigned processors_ = 0;
  std::vector<List> lists_;
};

}  // namespace hmc::cuda
