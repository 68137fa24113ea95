#pragma once

#include <string>

#include "base/fd.h"
#include "hmc/result.h"
#include "memory/region.h"

namespace hmc {

// Where asynchronous copies of one device queue up. A null handle is the backend's own queue for
// that device; any other is the vendor's stream that the caller works on.
struct Stream {
  Device device;
  void* handle = nullptr;
};

// What another process needs to reach an allocation: a descriptor or the vendor's handle bytes,
// whichever the backend uses, and where in it the memory lies.
struct Share {
  Fd fd;               // memfd, VMM or dma-buf export; not set when `handle` does it
  std::string handle;  // vendor IPC handle; empty when `fd` does it
  uint64_t offset = 0;
  uint64_t size = 0;
  Device device;
};

// SEAM 1: one kind of memory. One object serves all devices of its kind and is safe from any
// thread. Every method leaves the thread's current device as it found it. A runtime or device that
// is missing is a Status that names the file or driver, never an exit.
class Backend {
 public:
  struct Facts {
    DeviceKind kind;
    std::string name;  // "CUDA 13.0", "host memory"
    int deviceCount;
  };

  explicit Backend(Facts facts) : facts_(std::move(facts)) {}
  virtual ~Backend() = default;
  Backend(const Backend&) = delete;
  Backend& operator=(const Backend&) = delete;

  const Facts& facts() const { return facts_; }

  // `size` bytes on device `index`, zero-filled, aligned to a page at least. Sizes beyond 4 GiB
  // are ordinary. Size 0 is an error.
  virtual Result<Region> allocate(int index, size_t size) = 0;
  // Gives back what allocate() returned; `ptr` anything else is an error and frees nothing.
  virtual Status release(void* ptr) = 0;

  // Copies src.size bytes (dst.size must be no smaller). At least one side is on this kind; the
  // other is on this kind too or on the host. With no stream the bytes are in place when this
  // returns; with one they are when wait() on it returns. Overlapping regions are not allowed
  // unless both are on the host.
  virtual Status copy(const Region& dst, const Region& src, const Stream* stream) = 0;
  virtual Status wait(const Stream& stream) = 0;

  // The whole allocation around `ptr` as this kind knows it, whoever made it. notFound when the
  // pointer is not memory of this kind (for the host: not memory that allocate() made).
  virtual Result<Region> locate(const void* ptr) = 0;

  // The means for another process to reach `region`, which lies inside one allocation of this kind;
  // unsupported when there are none.
  virtual Result<Share> share(const Region& region) = 0;
  // Maps what another process shared: a Region of exactly share.size bytes, until detach().
  virtual Result<Region> attach(const Share& share) = 0;
  virtual Status detach(const Region& region) = 0;

 private:
  const Facts facts_;
};

}  // namespace hmc
