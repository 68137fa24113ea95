#pragma once

#include <cstdlib>
#include <memory>
#include <vector>

#include "transport/verbs/ports.h"

namespace hmc::verbs {

// Our own registered memory has a page to itself: old kernels hide registered pages from the
// children of fork().
inline constexpr size_t kPage = 4096;
using Page = std::unique_ptr<void, void (*)(void*)>;
inline Page makePage() {
  return {std::aligned_alloc(kPage, kPage), std::free};
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
  Nic(std::shared_ptr<const Library> library, const Port& port)
      : library_(std::move(library)), port_(port) {}
  Status prepare(Handle<ibv_context> context);

  const std::shared_ptr<const Library> library_;
  const Port port_;
  Handle<ibv_context> context_{nullptr, nullptr};
  Handle<ibv_pd> pd_{nullptr, nullptr};
  ibv_device_attr limits_{};
  const Page scratch_ = makePage();
  Handle<ibv_mr> scratchKey_{nullptr, nullptr};
};

using Nics = std::vector<std::unique_ptr<Nic>>;

// "mlx5_0+mlx5_1, RoCE v2"
std::string pathName(const Nics& nics);
// The most bytes of one operation: at most what all of them take, large enough to keep them busy,
// and small enough to be spread over channels and to be cancelled.
size_t largestPiece(const Nics& nics);

}  // namespace hmc::verbs
