#include "memory/cuda/kernels.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "memory/cuda/few_blocks.h"

namespace hmc::cuda {

namespace {

constexpr const char* kImage =
#include "memory/cuda/copy_blocks.ptx.inc"
    ;

// As in copy_blocks.cu.
struct Sides {
  void* dst;
  const void* src;
  unsigned toRemote;

  explicit Sides(const CopyBatch& batch)
      : dst(batch.to.ptr), src(batch.from.ptr), toRemote(batch.toRemote ? 1 : 0) {}
};
static_assert(sizeof(Block) == 24 && sizeof(Sides) == 24 && sizeof(FewBlock) == 24);
constexpr size_t kMostArguments = 4096;  // bytes, of any launch
static_assert(sizeof(Sides) + sizeof(Few) + 2 * sizeof(unsigned) <= kMostArguments);

constexpr unsigned kThreads = 512;  // of a block of the launch
constexpr unsigned kWarp = 32;
constexpr unsigned kThreadsForFew = 256;
// Memory of the device takes all threads that run at once, and blocks that begin when others end;
// the path to the host is full with fewer.
constexpr unsigned kBlocksPerProcessor = 4;
// From this mean size on, two warps work on a block of memory.
constexpr size_t kForTwoWarps = size_t{8} << 10;
// What a block of threads should have to do at the least, of a few blocks of memory.
constexpr unsigned kSmallestPartShift = 14;
// The copy engine is quicker for single blocks, and for those of this mean size.
constexpr size_t kMean = size_t{1} << 20;

size_t divideUp(size_t value, size_t by) {
  return (value + by - 1) / by;
}

// Parts of 2^shift bytes that a block of memory has.
size_t partsOf(const Block& block, unsigned shift) {
  return (block.size + (size_t{1} << shift) - 1) >> shift;
}

// The shift of the smallest parts of which there are no more than `most`, which is at least the
// number of blocks. Their sum is below 2^32: see isFor().
unsigned partShiftFor(const CopyBatch& batch, size_t most) {
  for (unsigned shift = kSmallestPartShift;; ++shift) {
    if (batch.bytes >> shift > most) continue;  // so many at the least
    size_t parts = 0;
    for (const Block& block : batch.blocks) parts += partsOf(block, shift);
    if (parts <= most) return shift;
  }
}

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

unsigned CopyKernel::mostBlocks(const CopyBatch& batch) const {
  const bool host = batch.to.device.isHost() || batch.from.device.isHost();
  return host ? processors_ : processors_ * kBlocksPerProcessor;
}

// Measured on an H200; docs/decisions/009 has the figures.
CopyKernel::Grid CopyKernel::gridFor(const CopyBatch& batch) const {
  const size_t most = mostBlocks(batch);
  const size_t count = batch.blocks.size();
  const bool host = most == processors_;
  unsigned width = host || meanOf(batch) < kForTwoWarps ? kWarp : 2 * kWarp;
  while (width < kThreads && 2 * count * width <= most * kThreads) width *= 2;
  const size_t wanted = divideUp(count, kThreads / width);
  // Small blocks of memory are shared out to more blocks of threads.
  const size_t each = divideUp(count, std::min(wanted, host ? most : 2 * most));
  return {{static_cast<unsigned>(count), width, static_cast<unsigned>(each)},
          static_cast<unsigned>(divideUp(count, each))};
}

Status CopyKernel::launch(const CopyBatch& batch, CuStream stream, bool readsEven) {
  std::lock_guard lock(mutex_);
  HMC_TRY(prepare());
  if (batch.blocks.size() <= kFew) return launchFew(batch, stream);
  return readsEven ? launchEven(batch, stream) : launchList(batch, stream);
}

Status CopyKernel::launchFew(const CopyBatch& batch, CuStream stream) const {
  Sides sides(batch);
  Few few;
  const size_t most = std::min<size_t>(kParts, std::max<size_t>(mostBlocks(batch), kFew));
  const unsigned shift = partShiftFor(batch, most);
  unsigned partSize = 1U << shift;
  unsigned parts = 0;
  for (size_t i = 0; i < batch.blocks.size(); ++i) {
    const auto& [local, remote, size] = batch.blocks[i];
    few.list[i] = {local, remote, static_cast<uint32_t>(size), parts};
    for (size_t left = partsOf(batch.blocks[i], shift); left > 0; --left)
      few.blockOf[parts++] = static_cast<uint8_t>(i);
  }
  if (parts == 0) return Status();
  void* arguments[] = {&sides, &few, &parts, &partSize};
  return run(few_, arguments, std::min(parts, mostBlocks(batch)), kThreadsForFew, stream);
}

Status CopyKernel::launchEven(const CopyBatch& batch, CuStream stream) const {
  Grid grid = gridFor(batch);
  Sides sides(batch);
  CuPointer at = address(batch.even.places);
  uint64_t size = batch.even.each;
  unsigned shift = batch.even.shift;
  void* arguments[] = {&sides, &at, &grid.shares, &size, &shift};
  return run(even_, arguments, grid.blocks, kThreads, stream);
}

Status CopyKernel::launchList(const CopyBatch& batch, CuStream stream) {
  Grid grid = gridFor(batch);
  HMC_ASSIGN(List list, takeList(batch.blocks.size()));
  std::memcpy(list.host, batch.blocks.data(), batch.blocks.size_bytes());
  Sides sides(batch);
  CuPointer at = address(list.host);
  void* arguments[] = {&sides, &at, &grid.shares};
  Status status = run(list_, arguments, grid.blocks, kThreads, stream);
  // The list's word is due also after a failure: what was enqueued may still read it.
  (void)driver_.cuStreamWriteValue32_v2(stream, list.word->address(), ++list.word->goal, 0);
  lists_.push_back(list);
  return status;
}

Status CopyKernel::run(CuFunction function, void** arguments, unsigned blocks, unsigned threads,
                       CuStream stream) const {
  HMC_CUDA(driver_, cuLaunchKernel, function, blocks, 1, 1, threads, 1, 1, 0, stream, arguments,
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
