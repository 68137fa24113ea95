#pragma once

#include <array>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/fd.h"
#include "base/interface.h"
#include "hmc/block.h"
#include "hmc/result.h"
#include "memory/places.h"
#include "memory/region.h"

namespace hmc {

// Which device it is, for all processes of a machine; indexes differ where CUDA_VISIBLE_DEVICES or
// its kin do. All zero is the host.
struct DeviceUuid {
  std::array<uint8_t, 16> bytes{};
  // "1b4f0e98-9a7d-4c3e-8d6f-2a1c5b7e9f03"
  std::string toString() const;
  friend bool operator==(const DeviceUuid&, const DeviceUuid&) = default;
};

// Where work of one device queues up and runs in order: a stream. Null is one of the backend's own
// for that device, which overlap with each other; anything else is the vendor's stream that the
// caller works on.
struct DeviceQueue {
  static constexpr uint8_t kLanes = 5;

  Device device;
  void* stream = nullptr;
  uint8_t lane = 0;  // which one of the backend's own
};

struct CopyPiece {
  void* dst;
  const void* src;
  size_t size;
};

// Blocks of one memory that go to another. Their offsets count from the beginning of each.
struct CopyBatch {
  Region to;
  Region from;
  std::span<const Block> blocks;
  uint64_t bytes;        // of all blocks
  bool toRemote = true;  // `to` is what the blocks call remote, else what they call local
  // The same blocks, where all are of one size. Stays as it is until they are copied, and may lie
  // in memory that the device cannot read.
  EvenBlocks even = {};

  CopyPiece piece(const Block& block) const {
    return {to.at(toRemote ? block.remoteOffset : block.localOffset),
            from.at(toRemote ? block.localOffset : block.remoteOffset), block.size};
  }
  // Calls copy(piece) for each that is not empty. Neighbours on both sides are one piece.
  template <class Copy>
  Status forEachPiece(Copy copy) const;
};

template <class Copy>
Status CopyBatch::forEachPiece(Copy copy) const {
  CopyPiece joined{};
  for (const Block& block : blocks) {
    const CopyPiece next = piece(block);
    if (next.dst == static_cast<char*>(joined.dst) + joined.size &&
        next.src == static_cast<const char*>(joined.src) + joined.size) {
      joined.size += next.size;
      continue;
    }
    if (joined.size > 0) HMC_TRY(copy(joined));
    joined = next;
  }
  return joined.size > 0 ? copy(joined) : Status();
}

// A point in time of one device that others can wait for. It passes once: because a queue got to
// where record() was called, or because the host calls signal(). Used for one or the other;
// record() again starts over. Destroying it lets go on what it still holds. Safe from any thread.
class DeviceEvent : public Interface {
 public:
  // Passes when everything that was enqueued there before has run. The queue is one of its device.
  virtual Status record(const DeviceQueue& queue) = 0;
  // Passes now. invalidArgument for an event that was recorded: its queue decides.
  virtual Status signal() = 0;
  // Never blocks. An error when the device failed: then it will never pass.
  virtual Result<bool> passed() = 0;
  // What is enqueued there from now on runs after it has passed; any queue of this kind. Never
  // blocks. unsupported where queues cannot wait for such an event: then the caller polls passed().
  virtual Status hold(const DeviceQueue& queue) = 0;
};

// What another process or a NIC needs to reach an allocation: descriptors or the vendor's handle
// bytes, whichever the backend uses, and where in it the memory lies.
enum class ShareFor : uint8_t {
  process,  // attach() in another process
  nic,      // a dma-buf, for ibv_reg_dmabuf_mr(3) and its kin
};
struct Share {
  // The owner holds that many descriptors while the memory is shared, of the 1024 that a process
  // usually may have.
  static constexpr size_t kMostPieces = 128;

  std::vector<Fd> fds;  // of the pieces that the memory is made of, in order; mostly one
  std::string handle;   // the vendor's, for what descriptors do not say or do
  uint64_t offset = 0;  // in the first piece
  uint64_t size = 0;
  DeviceKind kind = DeviceKind::cpu;
  DeviceUuid device;
  ShareFor purpose = ShareFor::process;
};

// Addresses that are set aside for attach(), and hold nothing until then. What is attached there
// stays valid when the reservation goes first.
class Reservation : public Interface {
 public:
  const Region region;
  const size_t alignment;  // places in it begin at multiples of this, counted from region.ptr

 protected:
  Reservation(const Region& where, size_t unit) : region(where), alignment(unit) {}
};

// Host memory that a device reads and writes by itself, until this is destroyed.
class PinnedMemory : public Interface {};

// SEAM 1: one kind of memory. One object serves all devices of its kind and is safe from any
// thread. Every method leaves the thread's current device as it found it. A runtime or device that
// is missing is a Status that names the file or driver, never an exit.
class Backend : public Interface {
 public:
  struct DeviceFacts {
    DeviceUuid uuid;
    std::string name;  // "NVIDIA H200"
  };
  struct Facts {
    DeviceKind kind;
    std::string name;                  // "CUDA 13.0", "host memory"
    std::vector<DeviceFacts> devices;  // by index
    int deviceCount() const { return static_cast<int>(devices.size()); }
  };

  explicit Backend(Facts facts) : facts_(std::move(facts)) {}
  const Facts& facts() const { return facts_; }
  // Is there a device of that index? The sentence says how many there are.
  Status checkIndex(int index) const;
  // The index that a device has in this process, or why it cannot be used here.
  Result<int> indexOf(const DeviceUuid& device) const;

  // `size` bytes on device `index`, zero-filled, aligned to a page at least. Sizes beyond 4 GiB
  // are ordinary. Size 0 is an error.
  virtual Result<Region> allocate(int index, size_t size) = 0;
  // Gives back what allocate() returned; `ptr` anything else is an error and frees nothing. Copies
  // of it that are still enqueued run first.
  virtual Status release(void* ptr) = 0;

  // Enqueues copies and returns: the bytes are in place when an event passes that was recorded
  // afterwards. One side is of this kind, the other of this kind, too, or the host; the queue is of
  // one of the two devices. Pieces do not overlap, except on the host. Host memory should be
  // pin()ned: a runtime may wait for copies of memory that is not. Pieces run in any order, copies
  // that were enqueued before run first. After an error some of several pieces may still run; such
  // an event covers them, too.
  virtual Status copy(const CopyBatch& batch, const DeviceQueue& queue) = 0;
  // The same for all of `src`, to the start of `dst`.
  Status copyAll(const Region& dst, const Region& src, const DeviceQueue& queue) {
    const Block whole{0, 0, src.size};
    return copy({dst, src, {&whole, 1}, src.size}, queue);
  }
  // For queues of device `index`.
  virtual Result<std::unique_ptr<DeviceEvent>> event(int index) = 0;

  // The whole allocation around `ptr` as this kind knows it, whoever made it. notFound when the
  // pointer is not memory of this kind (for the host: not memory that allocate() made).
  virtual Result<Region> locate(const void* ptr) = 0;

  // The means to reach `region`, which lies inside one allocation of this kind; unsupported when
  // there are none.
  virtual Result<Share> share(const Region& region, ShareFor purpose) = 0;
  // `size` bytes of addresses, or a little more, for attach(). With `at` they begin there, or it is
  // alreadyExists: something else lies there. Such an address is a multiple of 2 MiB.
  virtual Result<std::unique_ptr<Reservation>> reserve(size_t size, void* at = nullptr) = 0;
  // Maps what another process shared: a Region of exactly share.size bytes, until detach(). With
  // `at` it begins there: a free place in a reservation, which share.offset must be aligned for,
  // too.
  virtual Result<Region> attach(const Share& share, void* at = nullptr) = 0;
  // A place in a reservation is free again; on the host, empty pages of this process lie there.
  virtual Status detach(const Region& region) = 0;

  // Makes copies to and from host memory fast and truly asynchronous, for all devices of this kind.
  // May refuse a range that overlaps one which is pinned already (alreadyExists).
  virtual Result<std::unique_ptr<PinnedMemory>> pin(const Region& host) = 0;

 protected:
  // For copy(): does it concern this kind, and a queue of one of the two devices?
  Status checkCopy(const CopyBatch& batch, const DeviceQueue& queue) const;
  // For pin(): is it host memory at all?
  static Status checkPinnable(const Region& host);

 private:
  const Facts facts_;
};

}  // namespace hmc
