#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/fd.h"
#include "hmc/result.h"
#include "transport/transport.h"

namespace hmc::ipc {

// Another process of this pid namespace, whose memory the kernel lets us read and write. It stays
// that process: once it has died, calls fail, even when its pid was given to somebody else.
class Process {
 public:
  // Makes sure that `pid` is who we mean: it has these bytes at that address. permissionDenied when
  // the kernel forbids the access, notFound when the bytes differ or there is no such process.
  static Result<Process> find(pid_t pid, uint64_t nonceAddress, const std::string& nonce);

  // One transfer between `local` and the process's `address`. disconnected when the process is
  // gone.
  Status move(OpKind kind, void* local, uint64_t address, size_t size) const;

  struct Piece {
    void* local;
    uint64_t address;
    size_t size;
  };
  // Several in one system call; count is at most kMostPieces. False when any of it failed: what
  // arrived is not known then, move() them one by one.
  bool moveAll(OpKind kind, const Piece* pieces, size_t count) const;
  static constexpr size_t kMostPieces = 64;

  bool alive() const;

 private:
  Process(pid_t pid, Fd handle) : pid_(pid), handle_(std::move(handle)) {}
  pid_t pid_;
  Fd handle_;  // a pidfd; not set for ourselves and on kernels without
};

}  // namespace hmc::ipc
