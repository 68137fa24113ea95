#pragma once

#include <string>

#include "base/error.h"
#include "base/fd_exchange.h"
#include "hmc/result.h"
#include "memory/backends.h"

namespace hmc::ipc {

// A zero-filled T in memory that other processes can map, ours or a peer's. T has only fields for
// which zero is a good start, since no constructor runs.
template <class T>
class SharedBlock {
 public:
  static Result<SharedBlock> create() {
    HMC_ASSIGN(Region region, hostBackend().allocate(0, sizeof(T)));
    return SharedBlock(region, true);
  }
  static Result<SharedBlock> fetch(const std::string& exchange, const std::string& token,
                                   Deadline deadline) {
    Share share;
    HMC_ASSIGN(share.fd, FdExchange::fetch(exchange, token, deadline));
    share.size = sizeof(T);
    HMC_ASSIGN(Region region, hostBackend().attach(share));
    return SharedBlock(region, false);
  }

  SharedBlock(SharedBlock&& other) noexcept
      : region_(std::exchange(other.region_, Region{})), ours_(other.ours_) {}
  SharedBlock& operator=(SharedBlock&&) = delete;
  ~SharedBlock() {
    if (!region_.ptr) return;
    if (ours_) {
      (void)hostBackend().release(region_.ptr);
    } else {
      (void)hostBackend().detach(region_);
    }
  }

  // The token under which others can fetch() it; for blocks of our own.
  Result<std::string> offer(FdExchange& fds) const {
    HMC_ASSIGN(Share share, hostBackend().share(region_, ShareFor::process));
    return fds.offer(share.fd.get());
  }

  T* operator->() const { return static_cast<T*>(region_.ptr); }
  T& operator*() const { return *static_cast<T*>(region_.ptr); }

 private:
  SharedBlock(Region region, bool ours) : region_(region), ours_(ours) {}
  Region region_;
  bool ours_;
};

}  // namespace hmc::ipc
