#pragma once

#include <memory>

#include "base/lease.h"
#include "memory/host_copy.h"
#include "transport/exports.h"
#include "transport/ucx/wire.h"
#include "transport/ucx/worker.h"

namespace hmc::ucx {

// Serves what the peer of one link asks of us, until it is destroyed. One thread uses it at a time.
class Target final : public Worker {
 public:
  // Must not outlive the context and the exports.
  static Result<std::unique_ptr<Target>> create(Context& context, Exports& exports,
                                                std::shared_ptr<Lease> lease);

  // A process that was stopped for longer than the lease must not apply what it finds when it
  // wakes up: check before each progress().
  bool expired() const { return lease_->expired(); }
  // The peer has said hello and was answered.
  bool settled() const override { return greeted_; }
  // From now on nothing is applied, and every request is refused.
  void refuse() { refusing_ = true; }

 private:
  friend class Worker;
  // The bytes that go with an answer.
  struct Answer {
    std::unique_ptr<char[]> bytes;
    size_t size = 0;

    // Not cleared, because all of it is filled.
    char* take(size_t wanted) {
      bytes = std::make_unique_for_overwrite<char[]>(size = wanted);
      return bytes.get();
    }
  };

  Target(Context& context, Exports& exports, std::shared_ptr<Lease> lease)
      : Worker(context), exports_(exports), lease_(std::move(lease)) {}
  void received(const Message& message);
  Status apply(const Request& request, const Message& message, Answer& answer);

  Exports& exports_;
  const std::shared_ptr<Lease> lease_;
  RowCopy row_;  // of its puts
  bool greeted_ = false;
  bool refusing_ = false;
};

}  // namespace hmc::ucx
