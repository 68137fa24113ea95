// The fake driver's kernels: it knows those of src/memory/cuda/copy_blocks.cu by name.
#include <algorithm>
#include <array>

#include "fakes/fake_libcuda_state.h"
#include "hmc/block.h"
#include "memory/cuda/few_blocks.h"

struct CUmod_st {
  CUctx_st& context;
  std::string image;
};
struct CUfunc_st {
  CUctx_st& context;
  std::string name;
};

namespace hmc::cuda {

namespace fake {

namespace {

struct Sides {
  CuPointer dst;
  CuPointer src;
  unsigned toRemote;
};

struct Shares {
  unsigned count;
  unsigned width;
  unsigned each;
};

constexpr unsigned kMostThreads = 1024;  // of a block

// A kernel reads and writes the host's memory only where it is pinned, and no memory of another
// context.
bool reaches(CuPointer at, size_t size, const CUctx_st& context) {
  std::lock_guard lock(driver().mutex);
  auto range = rangeAround(driver(), at);
  if (range == driver().ranges.end()) return driver().isPinned(at, size);
  return !range->second.context || range->second.context == &context;
}

CuResult copyAll(const Sides& sides, const std::vector<Block>& blocks, const CUctx_st& context) {
  for (const auto& [local, remote, size] : blocks) {
    if (size == 0) continue;
    const CuPointer dst = sides.dst + (sides.toRemote != 0 ? remote : local);
    const CuPointer src = sides.src + (sides.toRemote != 0 ? local : remote);
    if (!reaches(dst, size, context) || !reaches(src, size, context)) return kIllegalAddress;
    HMC_FAKE_CHECK(copyNow(dst, src, size, context));
  }
  return kSuccess;
}

// What each part of a short list copies.
std::vector<Block> partsOf(const Few& few, unsigned parts, unsigned partSize) {
  std::vector<Block> blocks;
  for (unsigned i = 0; i < parts; ++i) {
    const auto& [local, remote, size, firstPart] = few.list[few.blockOf[i]];
    const size_t first = size_t{i - firstPart} * partSize;
    blocks.push_back({local + first, remote + first, std::min<size_t>(partSize, size - first)});
  }
  return blocks;
}

// Blocks of one size: offsets in units of 2^shift bytes.
struct Even {
  CuPointer list;
  size_t count;
  uint64_t size;
  unsigned shift;
};

CuResult copyEven(const Sides& sides, const Even& even, const CUctx_st& context) {
  std::vector<std::array<uint32_t, 2>> places(even.count);
  const size_t bytes = even.count * sizeof(places[0]);
  if (!reaches(even.list, bytes, context)) return kIllegalAddress;
  HMC_FAKE_CHECK(copyNow(reinterpret_cast<CuPointer>(places.data()), even.list, bytes, context));
  std::vector<Block> blocks;
  for (const auto& [local, remote] : places)
    blocks.push_back({size_t{local} << even.shift, size_t{remote} << even.shift, even.size});
  return copyAll(sides, blocks, context);
}

// The list is read when the kernel runs.
CuResult copyList(const Sides& sides, CuPointer list, size_t count, const CUctx_st& context) {
  std::vector<Block> blocks(count);
  const size_t bytes = count * sizeof(Block);
  if (!reaches(list, bytes, context)) return kIllegalAddress;
  HMC_FAKE_CHECK(copyNow(reinterpret_cast<CuPointer>(blocks.data()), list, bytes, context));
  return copyAll(sides, blocks, context);
}

}  // namespace

}  // namespace fake

using namespace fake;  // NOLINT: what follows is the driver's interface

FAKE CuResult cuModuleLoadData(CuModule* module, const void* image) {
  CuContext context = nullptr;
  HMC_FAKE_CHECK(enter(__func__, context));
  std::lock_guard lock(driver().mutex);
  *module = new CUmod_st{*context, static_cast<const char*>(image)};
  driver().modules.insert(*module);
  return kSuccess;
}

FAKE CuResult cuModuleGetFunction(CuFunction* function, CuModule module, const char* name) {
  CuContext context = nullptr;
  HMC_FAKE_CHECK(enter(__func__, context));
  std::lock_guard lock(driver().mutex);
  if (driver().modules.count(module) == 0 || &module->context != context) return kInvalidHandle;
  const std::string entry = std::string(".visible .entry ") + name + "(";
  if (module->image.find(entry) == std::string::npos) return kNoSuchName;
  *function = new CUfunc_st{*context, name};
  driver().functions.insert(*function);
  return kSuccess;
}

FAKE CuResult cuLaunchKernel(CuFunction function, unsigned blocks, unsigned blocksY,
                             unsigned blocksZ, unsigned threads, unsigned threadsY,
                             unsigned threadsZ, unsigned /*sharedBytes*/, CuStream stream,
                             void** arguments, void** /*extra*/) {
  CuContext context = nullptr;
  HMC_FAKE_CHECK(enter(__func__, context));
  if (&function->context != context) return kInvalidHandle;
  if (blocks == 0 || threads == 0 || threads > kMostThreads || blocksY != 1 || blocksZ != 1 ||
      threadsY != 1 || threadsZ != 1) {
    return kInvalidValue;
  }
  if (function->name.rfind("hmcCopy", 0) != 0) {
    return enqueue("of cuLaunchKernel", stream, [](const CUctx_st&) { return kIllegalAddress; });
  }
  // Arguments are copied now: the caller's are gone when the kernel runs.
  const Sides sides = *static_cast<const Sides*>(arguments[0]);
  if (function->name == "hmcCopyFew") {
    const auto blocksOfMemory =
        partsOf(*static_cast<const Few*>(arguments[1]), *static_cast<const unsigned*>(arguments[2]),
                *static_cast<const unsigned*>(arguments[3]));
    return enqueue("of cuLaunchKernel", stream, [sides, blocksOfMemory](const CUctx_st& on) {
      return copyAll(sides, blocksOfMemory, on);
    });
  }
  const auto [count, width, each] = *static_cast<const Shares*>(arguments[2]);
  // What is not shared out would not be copied.
  if (width == 0 || threads % width != 0 || uint64_t{blocks} * each < count) return kInvalidValue;
  const CuPointer list = *static_cast<const CuPointer*>(arguments[1]);
  if (function->name == "hmcCopyEven") {
    const Even even{list, count, *static_cast<const uint64_t*>(arguments[3]),
                    *static_cast<const unsigned*>(arguments[4])};
    return enqueue("of cuLaunchKernel", stream,
                   [=](const CUctx_st& on) { return copyEven(sides, even, on); });
  }
  return enqueue("of cuLaunchKernel", stream, [=, count = count](const CUctx_st& on) {
    return copyList(sides, list, count, on);
  });
}

}  // namespace hmc::cuda
