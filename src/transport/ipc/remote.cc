#include "transport/ipc/remote.h"

#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/error.h"
#include "base/log.h"
#include "memory/backends.h"

namespace hmc::ipc {

namespace {

// Vendors' handles cannot be opened by the process that made them, and need not be. The kernel says
// whether that is this one; the description is then our own.
bool isOurOwn(const Reached& reached) {
  return !reached.what.device.isHost() && reached.owner.pid == getpid();
}

Region whereItLies(const Description& what) {
  auto address = static_cast<uintptr_t>(what.address);
  return {reinterpret_cast<void*>(address), what.size, what.device};  // NOLINT
}

// Of the memory file that a peer shares, whose mapping can only be changed by whole pages of its
// own.
size_t pageSizeOf(const Share& share) {
  struct statfs info {};
  if (!share.fds.empty() && fstatfs(share.fds.front().get(), &info) == 0 &&
      info.f_type == HUGETLBFS_MAGIC) {
    return static_cast<size_t>(info.f_bsize);
  }
  return static_cast<size_t>(sysconf(_SC_PAGESIZE));
}

Region pagesAround(const Region& region, uintptr_t page) {
  const uintptr_t first = reinterpret_cast<uintptr_t>(region.ptr) / page * page;
  const uintptr_t end = reinterpret_cast<uintptr_t>(region.at(region.size));
  return {reinterpret_cast<void*>(first), (end - first + page - 1) / page * page,  // NOLINT
          region.device};
}

}  // namespace

const char* describe(PathKind kind) {
  constexpr const char* kNames[] = {"mapped", "mapped", "process_vm", "ring"};
  return kNames[static_cast<size_t>(kind)];
}

Attached::Attached(const Region& here, Backend& by, size_t page)
    : region(here), wholePages(pagesAround(here, page)), backend(by) {}

// Once mmap() has returned, no thread of ours reaches the old pages any more, so there is no need
// to wait for those that copy without asking the gate.
Status Attached::replacePages() {
  pins.clear();
  pages.stop();
  const void* empty = mmap(wholePages.ptr, wholePages.size, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  if (empty != MAP_FAILED) return Status();
  return errnoStatus(fmt::format("unmap {} bytes of a peer's memory", region.size));
}

void Attached::replaceIfTaken() {
  if (!range || !MappingGuard::isTaken(*range)) return;
  const auto replace = [&] {
    if (Status status = replacePages(); !status.ok()) logWarn("{}", status.message());
    guard->wake(*range);
  };
  const bool early = range->state.load() == GuardedRange::protecting;
  replace();
  if (!early) return;
  // An owner that was still at it has protected the new pages as well.
  MappingGuard::awaitOwner(*range);
  replace();
}

Status MappedRemote::unmap() {
  return region.device.isHost() && mapping ? mapping->replacePages() : Status();
}

Result<std::unique_ptr<RemoteMemory>> importMapped(Reached& reached, const LinkState& link,
                                                   Deadline deadline, void* place) {
  const Description& what = reached.what;
  if (!what.isShared()) {
    return error(Code::unsupported, "its owner does not offer it for mapping{}{}",
                 what.notShared.empty() ? "" : ": ", what.notShared);
  }
  if (isOurOwn(reached) && !place) {
    return std::unique_ptr<RemoteMemory>(
        std::make_unique<MappedRemote>(what, whereItLies(what), nullptr, link));
  }
  HMC_ASSIGN(Backend * backend, findBackend(what.device.kind));
  Share share;
  share.fds = std::move(reached.share);
  share.handle = what.shareHandle;
  share.offset = what.shareOffset;
  share.size = what.size;
  share.kind = what.device.kind;
  share.device = what.uuid;
  const size_t page = pageSizeOf(share);
  HMC_ASSIGN(Region region, backend->attach(share, place));
  auto attached = std::make_shared<Attached>(region, *backend, page);
  auto mapped = std::make_unique<MappedRemote>(what, region, std::move(attached), link,
                                               reached.owner.pid != getpid());
  // Reading provides sixteen pages at a time where writing provides one, and both make pages of
  // shared memory writable. Whoever says where the memory goes does this when it has the time.
  if (region.device.isHost() && !place) {
    mapped->mapping->pages = Population(region, Access::read, Population::From::end);
    mapped->mapping->pages.wait(
        std::min<std::chrono::nanoseconds>(Population::kOpening, deadline.left() / 2));
  }
  return std::unique_ptr<RemoteMemory>(std::move(mapped));
}

Result<std::unique_ptr<RemoteMemory>> importProcess(Reached& reached, std::string slower) {
  const Description& what = reached.what;
  if (!what.processVm || !what.device.isHost()) {
    return error(Code::unsupported, "its owner does not offer it for access by the kernel");
  }
  HMC_ASSIGN(Process process,
             Process::find(std::move(reached.owner), what.nonceAddress, what.nonce, what.access));
  std::optional<SharedBlock<ServicePage>> page;
  if (what.page) {
    HMC_ASSIGN(page, SharedBlock<ServicePage>::attach(reached.page));
    process.watch((*page)->liveness);
  }
  return std::unique_ptr<RemoteMemory>(std::make_unique<ProcessRemote>(
      what, std::move(process), std::move(page), std::move(slower)));
}

}  // namespace hmc::ipc
