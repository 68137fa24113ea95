#pragma once

#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

#include "base/fd.h"
#include "base/lease.h"
#include "base/peer_user.h"
#include "hmc/result.h"
#include "transport/transport.h"

namespace hmc::ipc {

// Another process of this pid namespace, whose memory the kernel lets us read and write. It stays
// that process: once it has died, calls fail, even when its pid was given to somebody else.
class Process {
 public:
  // The process that the kernel named. It must have these bytes at that address, else its number
  // was given to another one meanwhile. permissionDenied when the kernel forbids the access,
  // notFound when the bytes differ, there is no such process or it is in another pid namespace.
  // With Access::read nothing of ours could write there by mistake.
  static Result<Process> find(PeerProcess who, uint64_t nonceAddress, const std::string& nonce,
                              Access access = Access::readWrite);

  // The most that one call of the kernel moves.
  static constexpr size_t kMostAtOnce = size_t{1} << 20;

  // One transfer between `local` and the process's `address`. disconnected when the process is
  // gone, or the lease does not hold any more: it is asked before every call of the kernel.
  Status move(OpKind kind, void* local, uint64_t address, size_t size, const Lease& lease) const;

  // The same for a few bytes, inside the caller: the kernel makes the processor forget where to
  // return to, so that every function between a caller and its system call costs a misprediction.
  // False when it does not serve them, or did not work; move() says why.
  bool moveSmall(OpKind kind, void* local, uint64_t address, size_t size) const {
    if (size > kSmall || !memory_) return false;
    // Not by pread() and pwrite(): they make the thread cancellable and not again, which shows too.
    const long number = kind == OpKind::put ? SYS_pwrite64 : SYS_pread64;
    return syscall(number, memory_.get(), local, size, address) == static_cast<long>(size);
  }

  struct Piece {
    void* local;
    uint64_t address;
    size_t size;
  };
  // Several in one system call; count is at most kMostPieces, and their sizes together at most
  // kMostAtOnce. False when any of it failed: what arrived is not known then, move() them one by
  // one.
  bool moveAll(OpKind kind, const Piece* pieces, size_t count) const;
  static constexpr size_t kMostPieces = 64;

  bool alive() const;
  // From now on alive() reads this word instead of asking the kernel (base/liveness.h).
  void watch(const std::atomic<uint32_t>& liveness) {
    liveness_ = &liveness;
    handle_.reset();
  }

 private:
  // Up to here /proc/PID/mem may be quicker: the kernel looks for the process and its permission
  // when it is opened, not in every call. Above, it copies twice.
  static constexpr size_t kSmall = 2048;

  Process(pid_t pid, Fd handle, Fd memory)
      : pid_(pid), handle_(std::move(handle)), memory_(std::move(memory)) {}
  bool smallIsQuicker(uint64_t address, const std::string& expected) const;
  pid_t pid_;
  const std::atomic<uint32_t>* liveness_ = nullptr;
  Fd handle_;  // a pidfd; not set for ourselves, on kernels without and beside liveness_
  Fd memory_;  // /proc/PID/mem, which stays that process's; not set where that would not be quicker
};

}  // namespace hmc::ipc
