#pragma once

#include <memory>

#include "base/error.h"
#include "base/parcel.h"
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
  // A peer's, by its descriptor.
  static Result<SharedBlock> attach(const Fd& fd) {
    Share share;
    HMC_ASSIGN(Fd copy, duplicate(fd.get()));
    share.fds.push_back(std::move(copy));
    share.size = sizeof(T);
    HMC_ASSIGN(Region region, hostBackend().attach(share));
    return SharedBlock({region.ptr, [=](void*) { (void)hostBackend().detach(region); }});
  }

  // What others attach(); for blocks of our own.
  Result<Fd> share() const {
    const Region region{memory_.get(), sizeof(T), Device{}};
    HMC_ASSIGN(Share share, hostBackend().share(region, ShareFor::process));
    return std::move(share.fds[0]);
  }

  T* operator->() const { return static_cast<T*>(memory_.get()); }
  T& operator*() const { return *static_cast<T*>(memory_.get()); }

 private:
  explicit SharedBlock(std::shared_ptr<void> memory) : memory_(std::move(memory)) {}
  std::shared_ptr<void> memory_;
};

}  // namespace hmc::ipc
