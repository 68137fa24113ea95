#include "transport/ipc/mapping_guard.h"

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "base/error.h"
#include "base/futex.h"
#include "base/log.h"
#include "transport/mapping_report.h"

// Some are newer than the headers of the oldest distribution that we build on.
#ifndef UFFD_USER_MODE_ONLY
#define UFFD_USER_MODE_ONLY 1
#endif
#ifndef USERFAULTFD_IOC_NEW
#define USERFAULTFD_IOC_NEW _IO(0xAA, 0x00)
#endif
#ifndef UFFD_FEATURE_WP_HUGETLBFS_SHMEM
#define UFFD_FEATURE_WP_HUGETLBFS_SHMEM (1 << 12)
#endif

namespace hmc::ipc {

namespace {

// An owner that takes longer over one range was stopped, or died, in the middle of it.
constexpr std::chrono::milliseconds kOwnersTurn{200};

// What lies beside it is not the owner's to protect, whatever becomes of this.
uffdio_range pagesOf(const GuardedRange& range) {
  return {range.address.load(std::memory_order_relaxed),
          range.size.load(std::memory_order_relaxed)};
}

// Containers refuse the system call as a rule, and may be given the device instead (Linux 6.1).
Result<Fd> newHandle() {
  constexpr int kFlags = O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY;
  Fd handle(static_cast<int>(syscall(SYS_userfaultfd, kFlags)));
  if (handle) return handle;
  const int refused = errno;
  const Fd device(open("/dev/userfaultfd", O_RDWR | O_CLOEXEC));
  if (device) handle = Fd(ioctl(device.get(), USERFAULTFD_IOC_NEW, kFlags));
  if (handle) return handle;
  return error(Code::unsupported, "userfaultfd: {}; /dev/userfaultfd: {}", errnoText(refused),
               errnoText(errno));
}

// 0, or errno: ESRCH when the process is gone.
int makeReadOnly(int handle, const uffdio_range& range) {
  uffdio_register with{range, UFFDIO_REGISTER_MODE_WP, 0};
  const int unregistered = ioctl(handle, UFFDIO_REGISTER, &with) == 0 ? 0 : errno;
  // Also when that failed: it calls a process that is gone out of memory, and this one does not.
  uffdio_writeprotect protect{range, UFFDIO_WRITEPROTECT_MODE_WP};
  const Deadline deadline = kOwnersTurn;
  while (ioctl(handle, UFFDIO_WRITEPROTECT, &protect) != 0) {
    const bool again = (errno == EAGAIN || errno == EINTR) && !deadline.passed();
    if (!again) return unregistered != 0 && errno != ESRCH ? unregistered : errno;
  }
  return 0;
}

}  // namespace

Status mappingReport() {
  return MappingGuard::create().status();
}

Result<std::shared_ptr<MappingGuard>> MappingGuard::create() {
  HMC_ASSIGN(Fd handle, newHandle());
  uffdio_api api{UFFD_API, UFFD_FEATURE_PAGEFAULT_FLAG_WP | UFFD_FEATURE_WP_HUGETLBFS_SHMEM, 0};
  if (ioctl(handle.get(), UFFDIO_API, &api) != 0) {
    return errnoStatus("userfaultfd that protects shared memory, which takes Linux 5.19");
  }
  HMC_ASSIGN(auto table, SharedBlock<GuardTable>::create());
  return std::shared_ptr<MappingGuard>(new MappingGuard(std::move(handle), std::move(table)));
}

Result<std::vector<Fd>> MappingGuard::share() const {
  std::vector<Fd> fds(2);
  HMC_ASSIGN(fds[0], duplicate(handle_.get()));
  HMC_ASSIGN(fds[1], table_.share());
  return fds;
}

GuardedRange* MappingGuard::add(const Region& pages) {
  for (GuardedRange& range : table_->ranges) {
    // Two threads may be here: the one that claims it writes the rest before the owner may look.
    uint32_t expected = GuardedRange::unused;
    if (!range.state.compare_exchange_strong(expected, GuardedRange::readOnly)) continue;
    range.address.store(reinterpret_cast<uintptr_t>(pages.ptr), std::memory_order_relaxed);
    range.size.store(pages.size, std::memory_order_relaxed);
    range.state.store(GuardedRange::mapped, std::memory_order_release);
    return &range;
  }
  return nullptr;
}

bool MappingGuard::remove(GuardedRange& range) {
  if (!isTaken(range)) return true;  // and may be another's by now
  if (!awaitOwner(range)) return false;
  range.state.store(GuardedRange::unused);
  return true;
}

bool MappingGuard::awaitOwner(GuardedRange& range) {
  const Deadline deadline = kOwnersTurn;
  while (range.state.load() == GuardedRange::protecting) {
    if (deadline.passed()) return false;
    futexWait(range.state, GuardedRange::protecting, deadline);
  }
  return true;
}

bool MappingGuard::isTaken(GuardedRange& range) {
  uint32_t expected = GuardedRange::mapped;
  return !range.state.compare_exchange_strong(expected, GuardedRange::unused) &&
         expected != GuardedRange::unused;
}

void MappingGuard::wake(const GuardedRange& range) const {
  uffdio_range all = pagesOf(range);
  ioctl(handle_.get(), UFFDIO_WAKE, &all);
}

Result<PeerMappings> PeerMappings::attach(std::vector<Fd> fds) {
  if (fds.size() != 2) {
    return error(Code::invalidArgument, "{} descriptors came with mappings, which have two",
                 fds.size());
  }
  HMC_ASSIGN(auto table, SharedBlock<GuardTable>::attach(fds[1]));
  return PeerMappings(std::move(fds[0]), std::move(table));
}

void PeerMappings::protect() {
  for (GuardedRange& range : table_->ranges) {
    uint32_t expected = GuardedRange::mapped;
    if (!range.state.compare_exchange_strong(expected, GuardedRange::protecting)) continue;
    const int problem = makeReadOnly(handle_.get(), pagesOf(range));
    if (problem != 0 && problem != ESRCH) {
      logWarn("a lost peer may still write to {} bytes that it has mapped: {}", range.size.load(),
              errnoText(problem));
    }
    range.state.store(GuardedRange::readOnly);
    futexWakeAll(range.state);
  }
}

}  // namespace hmc::ipc
