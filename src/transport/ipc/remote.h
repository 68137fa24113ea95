#pragma once

#include <memory>
#include <optional>
#include <utility>

#include "memory/device_pins.h"
#include "memory/populate.h"
#include "transport/ipc/mapping_guard.h"
#include "transport/ipc/neighbour.h"
#include "transport/ipc/outgoing.h"
#include "transport/ipc/process_vm.h"
#include "transport/transport.h"

namespace hmc::ipc {

enum class PathKind : uint8_t { mappedHost, mappedDevice, processVm, ring };

// What a copy into mapped memory looks at. The Link's, which outlives its memory.
struct LinkState {
  explicit LinkState(std::shared_ptr<Lease> held) : lease(std::move(held)) {}
  std::atomic<bool> closing{false};
  const std::shared_ptr<Lease> lease;
};

// "mapped", "process_vm", "ring"
const char* describe(PathKind kind);

// A peer's memory, and the one path by which a Link reaches it. Every RemoteMemory that a Link is
// given came from that Link, so the Link may cast down; `kind` says to which.
class IpcRemote : public RemoteMemory {
 public:
  IpcRemote(const Description& what, PathKind taken, Mapped here = {}, std::string slower = "")
      : RemoteMemory(what.size, what.access, here,
                     {describe(taken), std::move(slower),
                      taken == PathKind::processVm || taken == PathKind::ring,
                      taken == PathKind::mappedHost || taken == PathKind::mappedDevice}),
        kind(taken) {}
  const PathKind kind;
};

// Memory of a peer's that is mapped here. Detached when the last one lets go: a device may be at it
// when the RemoteMemory goes.
struct Attached {
  // `page` is the size of the pages that it is mapped with.
  Attached(const Region& here, Backend& by, size_t page);
  ~Attached() {
    pins.clear();
    pages = {};
    if (!range || MappingGuard::remove(*range)) (void)backend.detach(region);
  }
  Attached(const Attached&) = delete;
  Attached& operator=(const Attached&) = delete;

  // Puts pages of this process in its place.
  Status replacePages();
  // The link is closed: the same, if the owner has taken its memory away from us by now.
  void replaceIfTaken();

  const Region region;
  const Region wholePages;  // around it
  Backend& backend;
  DevicePins pins;   // of host memory that devices of this process copy straight into
  Population pages;  // of host memory; set before the RemoteMemory is given away
  // Where its owner can protect it: set before the RemoteMemory is given away.
  std::shared_ptr<MappingGuard> guard;
  GuardedRange* range = nullptr;
};

class MappedRemote final : public IpcRemote {
 public:
  // `here` is detached with `attached`, unless that is null: then it lies here without. `link` is
  // the Link's state.
  MappedRemote(const Description& what, const Region& here, std::shared_ptr<Attached> attached,
               const LinkState& link, bool anotherProcess = false)
      : IpcRemote(
            what, here.device.isHost() ? PathKind::mappedHost : PathKind::mappedDevice,
            here.device.isHost() ? Mapped{here.at(0), &link.closing, link.lease.get()} : Mapped{}),
        region(here),
        mapping(std::move(attached)),
        guardable(anotherProcess && here.device.isHost() && what.access == Access::readWrite) {}
  const Region region;
  const std::shared_ptr<Attached> mapping;  // none where it lies here without being attached
  // Host memory of another process that we may write: its owner wants to be able to stop that.
  const bool guardable;

 private:
  Status unmap() override;
};

class ProcessRemote final : public IpcRemote {
 public:
  // `page` is the owner's and says whether it lives, where it has one.
  ProcessRemote(const Description& what, Process owner,
                std::optional<SharedBlock<ServicePage>> page, std::string slower)
      : IpcRemote(what, PathKind::processVm, {}, std::move(slower)),
        process(std::move(owner)),
        address(what.address),
        page_(std::move(page)) {}
  const Process process;
  const uint64_t address;

 private:
  const std::optional<SharedBlock<ServicePage>> page_;
};

class RingRemote final : public IpcRemote {
 public:
  RingRemote(const Description& what, Outgoing& linksRing, std::string slower)
      : IpcRemote(what, PathKind::ring, {}, std::move(slower)),
        ring(linksRing),
        region(what.region) {}
  Outgoing& ring;  // the Link's
  const uint64_t region;
};

// A peer's memory, mapped here, at `place` unless that is null. Without a place, in the owner's own
// process, that is the memory itself where the backend's handles only work between processes.
// `unsupported` when there is nothing to map, or this process cannot map it. Takes the share's
// descriptors.
Result<std::unique_ptr<RemoteMemory>> importMapped(Reached& reached, const LinkState& link,
                                                   Deadline deadline, void* place);

// A peer's memory, through the kernel. `slower` is why it was not mapped, where it could be.
Result<std::unique_ptr<RemoteMemory>> importProcess(Reached& reached, std::string slower);

}  // namespace hmc::ipc
