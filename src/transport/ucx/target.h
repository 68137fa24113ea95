#pragma once

#include <memory>
#include <string>

#include "base/lease.h"
#include "memory/host_copy.h"
#include "transport/exports.h"
#include "transport/ucx/wire.h"
#include "transport/ucx/worker.h"

namespace hmc::ucx {

// Serves what the peer of one link asks of us, until it is destroyed. One thread uses it at a time.
class Target {
 public:
  // Must not outlive the context and the exports.
  static Result<std::unique_ptr<Target>> create(Context& context, Exports& exports,
                                                std::shared_ptr<Lease> lease);

  const std::string& address() const { return worker_->address(); }
  int fd() const { return worker_->fd(); }
  bool arm() { return worker_->arm(); }
  // A process that was stopped for longer than the lease must not apply what it finds when it
  // wakes up: check before each serve().
  bool expired() const { return lease_->expired(); }
  // The peer has said hello and was answered.
  bool greeted() const { return greeted_; }
  // From now on nothing is applied, and every request is refused.
  void refuse() { refusing_ = true; }
  // True when something moved.
  bool serve() { return worker_->progress(); }

 private:
  struct Answer;

  Target(std::unique_ptr<Worker> worker, Exports& exports, std::shared_ptr<Lease> lease)
      : worker_(std::move(worker)), exports_(exports), lease_(std::move(lease)) {}
  static ucs_status_t onRequest(void* target, const void* header, size_t headerSize, void* data,
                                size_t size, const ucp_am_recv_param_t* param);
  void answer(const Request& request, const void* data, size_t size, ucp_ep_h origin);
  Status apply(const Request& request, const void* data, size_t size, Answer& answer);

  const std::unique_ptr<Worker> worker_;
  Exports& exports_;
  const std::shared_ptr<Lease> lease_;
  RowCopy row_;  // of its puts
  bool greeted_ = false;
  bool refusing_ = false;
};

}  // namespace hmc::ucx
