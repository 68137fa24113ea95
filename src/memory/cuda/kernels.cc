#include "memory/cuda/kernels.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"

namespace hmc::cuda {

namespace {

constexpr const char* kImage =
#include "memory/cuda/copy_blocks.ptx.inc"
    ;

constexpr size_t kFew = 128;  // blocks of memory that fit into the arguments of a launch
// As in copy_blocks.cu.
struct Few {
  Block list[kFew];
};
struct Sides {
  void* dst;
  const void* src;
  unsigned toRemote;

  explicit Sides(const CopyBatch& batch)
      : dst(batch.to.ptr), src(batch.from.ptr), toRemote(batch.toRemote ? 1 : 0) {}
};
static_assert(sizeof(Block) == 24 && sizeof(Sides) == 24);

constexpr unsigned kThreads = 512;  // of a block of the launch
constexpr unsigned kWarp = 32;
// Memory of the device takes all threads that run at once; the path to the host is full with fewer.
constexpr unsigned kBlocksPerProcessor = 4;
// From this mean size on, two warps work on a block of memory.
constexpr size_t kForTwoWarps = size_t{8} << 10;
// What a block of threads should have to do at the least.
constexpr size_t kSmallestPart = size_t{16} << 10;
// The copy engine is quicker for single blocks, and for those of this mean size.
constexpr size_t kMean = size_t{1} << 20;

size_t meanOf(const CopyBatch& batch) {
  return batch.blocks.empty() ? 0 : batch.bytes / batch.blocks.size();
}

}  // namespace

bool CopyKernel::isFor(const CopyBatch& batch) {
  return batch.blocks.size() > 1 && meanOf(batch) < kMean;
}

Status CopyKernel::prepare() {
  if (list_) return Status();
  CuModule module = nullptr;
  HMC_CUDA(driver_, cuModuleLoadData, &module, kImage);
  HMC_CUDA(driver_, cuModuleGetFunction, &few_, module, "hmcCopyFew");
  HMC_CUDA(driver_, cuModuleGetFunction, &even_, module, "hmcCopyEven");
  int processors = 0;
  HMC_CUDA(driver_, cuDeviceGetAttribute, &processors, kMultiprocessors, device_.handle());
  processors_ = static_cast<unsigned>(processors);
  HMC_CUDA(driver_, cuModuleGetFunction, &list_, module, "hmcCopyList");
  return Status();
}

// Measured on an H200; docs/decisions/009 has the figures.
CopyKernel::Grid CopyKernel::gridFor(const CopyBatch& batch) const {
  const bool host = batch.to.device.isHost() || batch.from.device.isHost();
  const size_t count = batch.blocks.size();
  const size_t mean = meanOf(batch);
  const size_t most = host ? processors_ : processors_ * kBlocksPerProcessor;
  Shares shares{static_cast<unsigned>(count), host || mean < kForTwoWarps ? kWarp : 2 * kWarp, 0};
  // Few blocks of memory get more threads each, and then more than one block of threads.
  while (shares.width < kThreads && 2 * count * shares.width <= most * kThreads) shares.width *= 2;
  while (2 * count << shares.split <= most && mean >> (shares.split + 1) >= kSmallestPart)
    ++shares.split;
  const size_t wanted = ((count << shares.split) * shares.width + kThreads - 1) / kThreads;
  return {shares, static_cast<unsigned>(std::min(wanted, most))};
}

Status CopyKernel::launch(const CopyBatch& batch, CuStream stream, bool readsEven) {
  std::lock_guard lock(mutex_);
  HMC_TRY(prepare());
  const Grid grid = gridFor(batch);
  if (batch.blocks.size() <= kFew) return launchFew(batch, stream, grid);
  return readsEven ? launchEven(batch, stream, grid) : launchList(batch, stream, grid);
}

Status CopyKernel::launchFew(const CopyBatch& batch, CuStream stream, Grid grid) const {
  Sides sides(batch);
  Few few;
  std::copy(batch.blocks.begin(), batch.blocks.end(), few.list);
  void* arguments[] = {&sides, &few, &grid.shares};
  return run(few_, arguments, grid.blocks, stream);
}

Status CopyKernel::launchEven(const CopyBatch& batch, CuStream stream, Grid grid) const {
  Sides sides(batch);
  CuPointer at = address(batch.even.places);
  uint64_t size = batch.even.each;
  unsigned shift = batch.even.shift;
  void* arguments[] = {&sides, &at, &grid.shares, &size, &shift};
  return run(even_, arguments, grid.blocks, stream);
}

Status CopyKernel::launchList(const CopyBatch& batch, CuStream stream, Grid grid) {
  HMC_ASSIGN(List list, takeList(batch.blocks.size()));
  std::memcpy(list.host, batch.blocks.data(), batch.blocks.size_bytes());
  Sides sides(batch);
  CuPointer at = address(list.host);
  void* arguments[] = {&sides, &at, &grid.shares};
  Status status = run(list_, arguments, grid.blocks, stream);
  // The list's word is due also after a failure: what was enqueued may still read it.
  (void)driver_.cuStreamWriteValue32_v2(stream, list.word->address(), ++list.word->goal, 0);
  lists_.push_back(list);
  return status;
}

Status CopyKernel::run(CuFunction function, void** arguments, unsigned blocks,
                       CuStream stream) const {
  HMC_CUDA(driver_, cuLaunchKernel, function, blocks, 1, 1, kThreads, 1, 1, 0, stream, arguments,
           nullptr);
  return Status();
}

Result<CopyKernel::List> CopyKernel::takeList(size_t count) {
  auto usable = [&](const List& list) { return list.capacity >= count && list.word->isDone(); };
  auto found = std::find_if(lists_.begin(), lists_.end(), usable);
  if (found != lists_.end()) {
    List list = *found;
    lists_.erase(found);
    return list;
  }
  List made;
  made.capacity = std::max<size_t>(4096, count);
  HMC_ASSIGN(made.word, words_.take());
  made.word->reached.store(made.word->goal);
  void* host = nullptr;
  Status allocated = driver_.check(
      driver_.cuMemHostAlloc(&host, made.capacity * sizeof(Block), kHostPortable | kHostMapped),
      "cuMemHostAlloc");
  if (!allocated.ok()) {
    words_.give(made.word);
    return allocated;
  }
  made.host = static_cast<Block*>(host);
  return made;
}

}  // namespace hmc::cuda
