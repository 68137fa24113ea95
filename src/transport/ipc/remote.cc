#include "transport/ipc/remote.h"

#include <sys/mman.h>
#include <unistd.h>

#include "base/error.h"
#include "base/fd_exchange.h"
#include "memory/backends.h"
#include "memory/populate.h"

namespace hmc::ipc {

namespace {

// Vendors' handles cannot be opened by the process that made them, and need not be.
bool isOurOwn(const Key& key) {
  return !key.device.isHost() && key.process == processNonce();
}

Region whereItLies(const Key& key) {
  auto address = static_cast<uintptr_t>(key.address);
  return {reinterpret_cast<void*>(address), key.size, key.device};  // NOLINT
}

// Puts empty pages of this process in the place of those around a mapping.
bool replacePages(const Region& mapping, uintptr_t page) {
  const uintptr_t first = reinterpret_cast<uintptr_t>(mapping.ptr) / page * page;
  const uintptr_t end = reinterpret_cast<uintptr_t>(mapping.at(mapping.size));
  const size_t size = (end - first + page - 1) / page * page;
  return mmap(reinterpret_cast<void*>(first), size, PROT_READ | PROT_WRITE,  // NOLINT
              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) != MAP_FAILED;
}

}  // namespace

const char* describe(PathKind kind) {
  constexpr const char* kNames[] = {"mapped", "mapped", "process_vm", "ring"};
  return kNames[static_cast<size_t>(kind)];
}

// Once mmap() has returned, no thread of ours reaches the old pages any more, so there is no need
// to wait for those that copy without asking the gate.
Status MappedRemote::unmap() {
  if (!region.device.isHost() || !mapping) return Status();
  mapping->pins.clear();
  constexpr uintptr_t kHugePage = uintptr_t{2} << 20;
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  // A mapping of huge pages is refused with ordinary ones; then it begins and ends at huge ones.
  if (replacePages(region, page) || replacePages(region, kHugePage)) return Status();
  return errnoStatus(fmt::format("unmap {} bytes of a peer's memory", region.size));
}

Result<std::unique_ptr<RemoteMemory>> importMapped(const Key& key, const std::atomic<bool>& closed,
                                                   Deadline deadline, void* place) {
  if (key.shareTokens.empty() && key.shareHandle.empty()) {
    return error(Code::unsupported, "its owner does not offer it for mapping{}{}",
                 key.notShared.empty() ? "" : ": ", key.notShared);
  }
  if (isOurOwn(key) && !place) {
    return std::unique_ptr<RemoteMemory>(
        std::make_unique<MappedRemote>(key, whereItLies(key), nullptr, closed));
  }
  HMC_ASSIGN(Backend * backend, findBackend(key.device.kind));
  Share share;
  for (const std::string& token : key.shareTokens) {
    HMC_ASSIGN(Fd fd, FdExchange::fetch(key.exchange, token, deadline));
    share.fds.push_back(std::move(fd));
  }
  share.handle = key.shareHandle;
  share.offset = key.shareOffset;
  share.size = key.size;
  share.kind = key.device.kind;
  share.device = key.uuid;
  HMC_ASSIGN(Region region, backend->attach(share, place));
  // Reading provides sixteen pages at a time where writing provides one, and both make pages of
  // shared memory writable. Whoever says where the memory goes does this when it has the time.
  if (region.device.isHost() && !place) populate(region, Access::read);
  return std::unique_ptr<RemoteMemory>(
      std::make_unique<MappedRemote>(key, region, backend, closed));
}

Result<std::unique_ptr<RemoteMemory>> importProcess(const Key& key, std::string slower,
                                                    Deadline deadline) {
  if (!key.processVm || !key.device.isHost()) {
    return error(Code::unsupported, "its owner does not offer it for access by the kernel");
  }
  HMC_ASSIGN(Process process, Process::find(key.pid, key.nonceAddress, key.nonce));
  std::optional<SharedBlock<ServicePage>> page;
  if (!key.pageToken.empty()) {
    HMC_ASSIGN(page, SharedBlock<ServicePage>::fetch(key.exchange, key.pageToken, deadline));
    process.watch((*page)->liveness);
  }
  return std::unique_ptr<RemoteMemory>(
      std::make_unique<ProcessRemote>(key, std::move(process), std::move(page), std::move(slower)));
}

}  // namespace hmc::ipc
