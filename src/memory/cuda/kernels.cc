#include "memory/cuda/kernels.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"

namespace hmc::cuda {

namespace {

constexpr const char* kImage =
#include "memory/cuda/copy_pieces.ptx.inc"
    ;

constexpr size_t kFew = 128;  // pieces that fit into the arguments of a launch
struct Few {
  CopyPiece list[kFew];
};
static_assert(sizeof(CopyPiece) == 24, "as in copy_pieces.cu");

constexpr unsigned kThreads = 512;  // of a block
constexpr unsigned kWarp = 32;
constexpr unsigned kBlocksPerProcessor = 4;
// A whole block works on a piece from this mean size on, else a warp does.
constexpr size_t kPieceOfABlock = size_t{8} << 10;
// Lists that are longer are copied to the device first: it reads the host's memory slowly.
constexpr size_t kReadFromHost = 8192;
// The copy engine is quicker for single pieces, and for pieces of this mean size.
constexpr size_t kMean = size_t{1} << 20;

size_t meanOf(std::span<const CopyPiece> pieces) {
  size_t bytes = 0;
  for (const CopyPiece& piece : pieces) bytes += piece.size;
  return pieces.empty() ? 0 : bytes / pieces.size();
}

}  // namespace

bool CopyKernel::isFor(std::span<const CopyPiece> pieces) {
  return pieces.size() > 1 && meanOf(pieces) < kMean;
}

Status CopyKernel::prepare() {
  if (list_) return Status();
  CuModule module = nullptr;
  HMC_CUDA(driver_, cuModuleLoadData, &module, kImage);
  HMC_CUDA(driver_, cuModuleGetFunction, &few_, module, "hmcCopyFew");
  int processors = 0;
  HMC_CUDA(driver_, cuDeviceGetAttribute, &processors, kMultiprocessors, device_.handle());
  mostBlocks_ = static_cast<unsigned>(processors) * kBlocksPerProcessor;
  HMC_CUDA(driver_, cuModuleGetFunction, &list_, module, "hmcCopyList");
  return Status();
}

Status CopyKernel::launch(std::span<const CopyPiece> pieces, CuStream stream) {
  std::lock_guard lock(mutex_);
  HMC_TRY(prepare());
  unsigned width = meanOf(pieces) < kPieceOfABlock ? kWarp : kThreads;
  if (pieces.size() > kFew) return launchList(pieces, stream, width);
  Few few;
  std::copy(pieces.begin(), pieces.end(), few.list);
  auto count = static_cast<unsigned>(pieces.size());
  void* arguments[] = {&few, &count, &width};
  return run(few_, arguments, count, width, stream);
}

Status CopyKernel::launchList(std::span<const CopyPiece> pieces, CuStream stream, unsigned width) {
  HMC_ASSIGN(List list, takeList(pieces.size()));
  std::memcpy(list.host, pieces.data(), pieces.size_bytes());
  CuPointer at = address(list.host);
  auto count = static_cast<unsigned>(pieces.size());
  Status status;
  if (pieces.size() > kReadFromHost && list.onDevice != 0) {
    status = driver_.check(driver_.cuMemcpyAsync(list.onDevice, at, pieces.size_bytes(), stream),
                           "cuMemcpyAsync");
    at = list.onDevice;
  }
  void* arguments[] = {&at, &count, &width};
  if (status.ok()) status = run(list_, arguments, count, width, stream);
  // The list's word is due also after a failure: what was enqueued may still read it.
  (void)driver_.cuStreamWriteValue32_v2(stream, list.word->address(), ++list.word->goal, 0);
  lists_.push_back(list);
  return status;
}

Status CopyKernel::run(CuFunction function, void** arguments, size_t count, unsigned width,
                       CuStream stream) const {
  const size_t piecesPerBlock = kThreads / width;
  const size_t wanted = (count + piecesPerBlock - 1) / piecesPerBlock;
  const auto blocks = static_cast<unsigned>(std::min<size_t>(wanted, mostBlocks_));
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
  made.capacity = std::max<size_t>(1024, count);
  HMC_ASSIGN(made.word, words_.take());
  made.word->reached.store(made.word->goal);
  void* host = nullptr;
  Status allocated = driver_.check(
      driver_.cuMemHostAlloc(&host, made.capacity * sizeof(CopyPiece), kHostPortable | kHostMapped),
      "cuMemHostAlloc");
  if (!allocated.ok()) {
    words_.give(made.word);
    return allocated;
  }
  made.host = static_cast<CopyPiece*>(host);
  // Without it the device reads the host's list, more slowly.
  if (count > kReadFromHost) {
    (void)driver_.cuMemAlloc_v2(&made.onDevice, made.capacity * sizeof(CopyPiece));
  }
  return made;
}

}  // namespace hmc::cuda
