#pragma once

#include <memory>
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
    return SharedBlock({region.ptr, [](void* ptr) { (void)hostBackend().release(ptr); }});
  }
  static Result<SharedBlock> fetch(const std::string& exchange, const std::string& token,
                                   Deadline deadline) {
    Share share;
    HMC_ASSIGN(Fd fd, FdExchange::fetch(exchange, token, deadline));
    share.fds.push_back(std::move(fd));
    share.size = sizeof(T);
    HMC_ASSIGN(Region region, hostBackend().attach(share));
    return SharedBlock({region.ptr, [=](void*) { (void)hostBackend().detach(region); }});
  }

  // The token under which others can fetch() it; for blocks of our own.
  Result<std::string> offer(FdExchange& fds) const {
    const Region region{memory_.get(), sizeof(T), Device{}};
    HMC_ASSIGN(Share share, hostBackend().share(region, ShareFor::process));
    return fds.offer(share.fds[0].get());
  }

  T* operator->() const { return static_cast<T*>(memory_.get()); }
  T& operator*() const { return *static_cast<T*>(memory_.get()); }

 private:
  explicit SharedBlock(std::shared_ptr<void> memory) : memory_(std::move(memory)) {}
  std::shared_ptr<void> memory_;
};

}  // namespace hmc::ipc
