#include "transport/ipc/process_vm.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>

#include "base/error.h"
#include "base/liveness.h"
#include "transport/check.h"

namespace hmc::ipc {

namespace {

void* pointer(uint64_t address) {
  return reinterpret_cast<void*>(static_cast<uintptr_t>(address));  // NOLINT
}

ssize_t call(OpKind kind, pid_t pid, const iovec* local, const iovec* remote, size_t count) {
  return kind == OpKind::put ? process_vm_writev(pid, local, count, remote, count, 0)
                             : process_vm_readv(pid, local, count, remote, count, 0);
}

Fd openPidfd(pid_t pid) {
#ifdef SYS_pidfd_open
  return Fd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
#else
  return Fd();
#endif
}

Status failure(OpKind kind, pid_t pid, const void* local, uint64_t address, size_t done,
               size_t size, int errnum) {
  if (errnum == ESRCH) return error(Code::disconnected, "the peer's process {} is gone", pid);
  if (errnum == EFAULT) {
    return error(Code::failed,
                 "{} of {} bytes at {:#x} in process {} stopped after {}: from there on the memory "
                 "is unmapped or protected, at the peer or in this process, where it is at {}",
                 opName(kind), size, address, pid, done, local);
  }
  return errnoStatus(
      fmt::format("{} of {} bytes at {:#x} in process {}", opName(kind), size, address, pid),
      errnum);
}

}  // namespace

// Which of the two is quicker depends on the kernel's settings: /proc/PID/mem takes a page for
// every call, which some kernels clear first. False also when that file is not this process's.
bool Process::smallIsQuicker(uint64_t address, const std::string& expected) const {
  constexpr int kTries = 8;
  auto bestOf = [&](auto&& read) {
    auto best = std::chrono::steady_clock::duration::max();
    for (int i = 0; i < kTries; ++i) {
      std::string found(expected.size(), '\0');
      auto start = std::chrono::steady_clock::now();
      if (!read(found) || found != expected) return std::chrono::steady_clock::duration::max();
      best = std::min(best, std::chrono::steady_clock::now() - start);
    }
    return best;
  };
  const auto small = bestOf([&](std::string& found) {
    return moveSmall(OpKind::get, found.data(), address, found.size());
  });
  const auto usual = bestOf([&](std::string& found) {
    iovec here{found.data(), found.size()};
    iovec there{pointer(address), found.size()};
    return call(OpKind::get, pid_, &here, &there, 1) == static_cast<ssize_t>(found.size());
  });
  return small < usual;
}

Result<Process> Process::find(PeerProcess who, uint64_t nonceAddress, const std::string& nonce,
                              Access access) {
  const pid_t pid = who.pid;
  if (pid <= 0)
    return error(Code::notFound,
                 "the peer's process is in a pid namespace that this one is not in");
  // The handles first: it is the process that the nonce is then read from, or a dead one.
  Fd handle = who.handle ? std::move(who.handle) : openPidfd(pid);
  if (pid == getpid()) handle.reset();
  const int mode = (access == Access::read ? O_RDONLY : O_RDWR) | O_CLOEXEC;
  Process process(pid, std::move(handle), Fd(open(fmt::format("/proc/{}/mem", pid).c_str(), mode)));
  std::string found(nonce.size(), '\0');
  iovec local{found.data(), found.size()};
  iovec remote{pointer(nonceAddress), found.size()};
  ssize_t got = call(OpKind::get, pid, &local, &remote, 1);
  if (got < 0 && (errno == EPERM || errno == ENOSYS)) {
    return error(Code::permissionDenied, "the kernel forbids access to process {}: {}", pid,
                 errnoText(errno));
  }
  if (got != static_cast<ssize_t>(nonce.size()) || found != nonce || !process.alive()) {
    return error(Code::notFound, "process {} is not the peer", pid);
  }
  if (process.memory_ && !process.smallIsQuicker(nonceAddress, nonce)) process.memory_.reset();
  return process;
}

bool Process::alive() const {
  if (liveness_) return isAlive(*liveness_);
  if (!handle_) return true;
  pollfd entry{handle_.get(), POLLIN, 0};
  return poll(&entry, 1, 0) == 0;
}

Status Process::move(OpKind kind, void* local, uint64_t address, size_t size,
                     const Lease& lease) const {
  if (!alive()) return failure(kind, pid_, local, address, 0, size, ESRCH);
  size_t done = 0;
  while (done < size) {
    if (!lease.held()) return notHeld(lease);
    size_t step = std::min(size - done, kMostAtOnce);
    iovec here{static_cast<char*>(local) + done, step};
    iovec there{pointer(address + done), step};
    ssize_t moved = call(kind, pid_, &here, &there, 1);
    if (moved < 0 && errno == EINTR) continue;
    if (moved <= 0)
      return failure(kind, pid_, local, address, done, size, moved < 0 ? errno : EFAULT);
    done += static_cast<size_t>(moved);
  }
  return Status();
}

bool Process::moveAll(OpKind kind, const Piece* pieces, size_t count) const {
  if (!alive()) return false;
  iovec here[kMostPieces];
  iovec there[kMostPieces];
  size_t total = 0;
  for (size_t i = 0; i < count; ++i) {
    here[i] = {pieces[i].local, pieces[i].size};
    there[i] = {pointer(pieces[i].address), pieces[i].size};
    total += pieces[i].size;
  }
  return call(kind, pid_, here, there, count) == static_cast<ssize_t>(total);
}

}  // namespace hmc::ipc
