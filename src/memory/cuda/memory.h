#pragma once

#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <vector>

#include "memory/cuda/device.h"
#include "memory/reservations.h"

namespace hmc::cuda {

// The physical memory behind addresses. Given back at the end; who else has it keeps it.
class Physical {
 public:
  Physical(const Driver& driver, CuAllocation handle) : driver_(&driver), handle_(handle) {}
  Physical(Physical&& other) noexcept
      : driver_(other.driver_), handle_(std::exchange(other.handle_, 0)) {}
  Physical& operator=(Physical&&) = delete;
  ~Physical() {
    if (handle_ != 0) (void)driver_->cuMemRelease(handle_);
  }
  CuAllocation get() const { return handle_; }

 private:
  const Driver* driver_;
  CuAllocation handle_;
};

// Device memory as this process sees it: what it allocated, what it attached, and what others
// allocated. Safe from any thread.
class Memory {
 public:
  Memory(const Backend& owner, const Driver& driver, std::deque<CudaDevice>& devices)
      : owner_(owner), driver_(driver), devices_(devices) {}
  ~Memory();

  Result<Region> allocate(int index, size_t size);
  // Nothing uses it any more. `attached`: what attach() made.
  Status remove(const void* ptr, bool attached);
  Status check(const void* ptr, bool attached);

  Result<Region> locate(const void* ptr);
  // The memory around `ptr` as far as kernels in its device's primary context reach it; nothing
  // where that is not certain, such as memory of another context.
  Region reachedByKernels(const void* ptr);
  Result<Share> share(const Region& region, ShareFor purpose);
  Result<std::unique_ptr<Reservation>> reserve(size_t size, void* at);
  Result<Region> attach(const Share& share, int index, void* at);

 private:
  struct Chunk {
    Physical physical;
    size_t size;
  };
  struct Block {
    Region region;         // what callers see
    char* base = nullptr;  // what is mapped around it, in whole granules
    size_t mapped = 0;
    bool attached = false;
    std::vector<Chunk> chunks;     // side by side; none: opened by its legacy handle
    std::optional<Mapping> place;  // in a reservation; none: the addresses are ours
  };
  // A legacy handle that is opened twice gives the same addresses twice.
  using Blocks = std::multimap<const char*, Block>;

  // What the driver knows of a pointer; `size` 0 when it is no device memory.
  struct Known {
    int index = 0;
    char* base = nullptr;
    size_t size = 0;
    bool legacyIpc = false;
    uint64_t handleTypes = 0;
  };
  Result<Known> ask(const void* ptr) const;
  // Physical memory as it is mapped here: all of one handle.
  struct MappedChunk {
    CuPointer base = 0;
    size_t size = 0;
    uint64_t handleTypes = 0;
  };
  Result<std::vector<MappedChunk>> chunksUnder(const Region& region) const;

  CuMemProperties propertiesOf(const CudaDevice& device) const;
  Result<size_t> granularity();
  Result<Physical> create(CudaDevice& device, size_t granules, size_t size);
  // Maps physical memory at free addresses, or at `at`, and lets every device that can reach it.
  Status map(Block& block, void* at);
  Status unmap(Block& block);
  Status unmapChunks(const Block& block, size_t count);
  Result<Region> add(Block block);
  Blocks::iterator around(const void* ptr);  // with mutex_ held

  Result<Share> shareForNic(const Region& region, const CudaDevice& device);
  Result<Share> shareForProcess(const Region& region);
  Result<Share> shareLegacy(const Region& region, const char* base);
  Result<Region> attachLegacy(const Share& share, std::string_view handle, CudaDevice& device);

  const Backend& owner_;
  const Driver& driver_;
  std::deque<CudaDevice>& devices_;
  Reservations reservations_;
  std::atomic<bool> fabric_{true};  // false once the machine's fabric service was found missing
  std::mutex mutex_;                // guards the table, not the memory
  Blocks blocks_;                   // by region.ptr
};

}  // namespace hmc::cuda
