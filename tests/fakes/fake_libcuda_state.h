#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "memory/cuda/driver_api.h"

// Inside tests/fakes/fake_libcuda*.cc: what the fake driver knows.
#define FAKE extern "C" __attribute__((visibility("default")))

namespace hmc::cuda {

// The compiler holds the definitions against these.
#define HMC_ROW(name, arguments) FAKE CuResult name arguments;
HMC_CUDA_FUNCTIONS(HMC_ROW)
#undef HMC_ROW

namespace fake {

constexpr CuResult kInvalidDevice = 101;
constexpr CuResult kMapFailed = 205;
constexpr CuResult kInvalidHandle = 400;
constexpr CuResult kNoSuchName = 500;
constexpr CuResult kIllegalAddress = 700;
constexpr CuResult kNotRegistered = 713;

constexpr size_t kGranule = size_t{2} << 20;
constexpr uintptr_t kPage = 4096;

inline bool isWhole(size_t size) {
  return size % kGranule == 0;
}
// 0 when that would overflow.
inline size_t inGranules(size_t size) {
  return (size + kGranule - 1) / kGranule * kGranule;
}

// One device that this process sees.
struct GpuState {
  int physical = 0;  // its number on the machine
  int index = 0;     // its number in this process
  CuContext context = nullptr;
  std::atomic<size_t> used{0};  // bytes
};

// Bytes of a device: a memfd, and where the fake itself reads and writes them. Everybody else has
// addresses that the processor cannot touch.
struct PhysicalBytes {
  PhysicalBytes() = default;
  PhysicalBytes(const PhysicalBytes&) = delete;
  PhysicalBytes& operator=(const PhysicalBytes&) = delete;
  ~PhysicalBytes();

  int fd = -1;
  size_t size = 0;
  char* bytes = nullptr;
  GpuState* gpu = nullptr;
  bool counted = false;  // in gpu->used: it was made here, not imported
  int handleTypes = 0;
  CuAllocation handle = 0;
  int references = 0;  // to the handle; guarded by the driver's mutex
};
using PhysicalPtr = std::shared_ptr<PhysicalBytes>;

// Addresses, which are nobody's memory except where something is mapped.
struct AddressRange {
  enum class Kind : uint8_t { reserved, allocated, opened, managed };
  Kind kind = Kind::reserved;
  size_t size = 0;      // what its owner asked for
  size_t granules = 0;  // the same in whole granules, in bytes
  GpuState* gpu = nullptr;
  CuContext context = nullptr;  // whose kernels reach it; none: those of all
  std::string handle;           // that it was opened with
  int opens = 0;
};
struct MappedMemory {
  PhysicalPtr memory;
  size_t size = 0;
  std::set<int> access;  // indexes of devices
};

struct DriverState {
  struct Failure {
    int calls;  // until it happens
    CuResult code;
  };

  std::atomic<int> pid{0};  // of the process that called cuInit()
  std::mutex mutex;         // guards what follows
  std::deque<GpuState> gpus;
  size_t memory = 0;  // bytes of each
  std::set<CuContext> contexts;
  std::set<CuStream> streams;
  std::set<CuModule> modules;
  std::set<CuFunction> functions;
  CuAllocation lastHandle = 0x1000;
  std::map<CuAllocation, PhysicalPtr> handles;
  std::map<CuPointer, AddressRange> ranges;
  std::map<CuPointer, MappedMemory> mappings;
  std::map<CuPointer, size_t> pinned;  // host memory
  std::set<CuPointer> registered;      // some of it
  std::map<std::string, Failure> failures;

  GpuState* gpuAt(int index);
  GpuState* gpuOfPhysical(int physical);
  bool isPinned(CuPointer at, size_t size) const;
  // What is mapped from `at` on, for a stream of `gpu`. Empty when some of it is not.
  struct Span {
    char* bytes;
    size_t size;
    PhysicalPtr memory;
  };
  std::vector<Span> spansOf(CuPointer at, size_t size, int gpu) const;
};

// Never destroyed: streams run until the process ends.
DriverState& driver();

// The entry that holds `at`, of a map from first addresses to what has a size.
template <class Map, class SizeOf>
auto around(Map& map, CuPointer at, SizeOf sizeOf) {
  auto next = map.upper_bound(at);
  if (next == map.begin()) return map.end();
  auto found = std::prev(next);
  return at - found->first < sizeOf(found->second) ? found : map.end();
}
inline auto rangeAround(DriverState& state, CuPointer at) {
  return around(state.ranges, at, [](const AddressRange& range) { return range.granules; });
}
inline auto mappingAround(DriverState& state, CuPointer at) {
  return around(state.mappings, at, [](const MappedMemory& mapped) { return mapped.size; });
}

// What every call asks first: was the driver initialised, in this process, and shall this call
// fail?
CuResult enter(const char* function);
// As enter(), and `context` is the thread's current one, which works.
CuResult enter(const char* function, CuContext& context);

#define HMC_FAKE_CHECK(expression)                                \
  if (const CuResult failed = (expression); failed != kSuccess) { \
    return failed;                                                \
  }

// Memory of a device; with the mutex held.
CuResult makePhysical(GpuState& gpu, size_t size, PhysicalPtr& made);
// The same memory by a descriptor of it, from whichever process.
CuResult importPhysical(int fd, PhysicalPtr& made);
// Addresses that the processor cannot touch, 0 when there are none.
CuPointer reserveAddresses(size_t granules, int protection);
// `work` runs when everything has that was enqueued there before; what it answers breaks the
// context. For the call `function`.
using Work = std::function<CuResult(const CUctx_st&)>;
CuResult enqueue(const char* function, CuStream stream, Work work);
CuResult copyNow(CuPointer dst, CuPointer src, size_t size, const CUctx_st& context);
// Waits until everything that was enqueued has run.
CuResult synchronize(CuContext context);
CuContext addContext(GpuState& gpu);  // with the mutex held

}  // namespace fake
}  // namespace hmc::cuda

struct CUctx_st {
  explicit CUctx_st(hmc::cuda::fake::GpuState& of) : gpu(of) {}

  hmc::cuda::fake::GpuState& gpu;
  std::atomic<hmc::cuda::CuResult> failure{0};  // once it is broken
  CUstream_st* legacy = nullptr;                // stream 0 and 1
  CUstream_st* perThread = nullptr;             // stream 2; one for all threads here
};
