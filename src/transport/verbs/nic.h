#pragma once

#include <cstdlib>
#include <memory>
#include <vector>

#include "transport/verbs/ports.h"

namespace hmc::verbs {

// Our own registered memory has a page to itself: old kernels hide registered pages from the
// children of fork().
inline constexpr size_t kPage = 4096;
template <class T>
struct FreeDelete {
  void operator()(T* memory) const { std::free(memory); }
};
template <class T>
using Page = std::unique_ptr<T, FreeDelete<T>>;
template <class T>
Page<T> makePage() {
  return Page<T>(static_cast<T*>(std::aligned_alloc(kPage, kPage)));
}

// An open device and the port of it that we use. Safe from any thread.
class Nic {
 public:
  static Result<std::unique_ptr<Nic>> open(std::shared_ptr<const Library> library,
                                           const Port& port);

  const Library& library() const { return *library_; }
  const Port& port() const { return port_; }
  ibv_context* context() const { return context_.get(); }
  ibv_pd* pd() const { return pd_.get(); }
  const ibv_device_attr& limits() const { return limits_; }
  int asyncFd() const { return context_->async_fd; }
  // A byte for reads that only wait for earlier writes.
  ibv_sge scratch() const {
    return {reinterpret_cast<uint64_t>(scratch_.get()), 1, scratchKey_->lkey};
  }

  // The port's state, where it explains a failure: "; port mlx5_0:1 is down".
  std::string trouble() const;

 private:
  Nic(std::shared_ptr<const Library> library, const Port& port, Handle<ibv_context> context,
      Handle<ibv_pd> pd, const ibv_device_attr& limits, Page<char> scratch,
      Handle<ibv_mr> scratchKey)
      : library_(std::move(library)),
        port_(port),
        context_(std::move(context)),
        pd_(std::move(pd)),
        limits_(limits),
        scratch_(std::move(scratch)),
        scratchKey_(std::move(scratchKey)) {}

  const std::shared_ptr<const Library> library_;
  const Port port_;
  const Handle<ibv_context> context_;
  const Handle<ibv_pd> pd_;
  const ibv_device_attr limits_;
  const Page<char> scratch_;
  const Handle<ibv_mr> scratchKey_;
};

using Nics = std::vector<std::unique_ptr<Nic>>;

// "mlx5_0+mlx5_1, RoCE v2"
std::string pathName(const Nics& nics);
// The most bytes of one operation: at most what all of them take, large enough to keep them busy,
// and small enough to be spread over channels and to be cancelled.
size_t largestPiece(const Nics& nics);

}  // namespace hmc::verbs
