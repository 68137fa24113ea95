#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/lease.h"
#include "memory/host_copy.h"
#include "transport/exports.h"
#include "transport/ucx/wire.h"
#include "transport/ucx/worker.h"

namespace hmc::ucx {

// The worker and the endpoint over which one link's operations go to the peer's Target. One thread
// uses it at a time.
class Path final : public Worker, private EndpointOwner {
 public:
  // Called from inside of progress().
  class User : public EndpointOwner {
   public:
    virtual void replied(const Reply& reply, const void* data, size_t size) = 0;
  };

  // Begins to send a hello to the peer's target at that address.
  static Result<std::unique_ptr<Path>> create(Context& context, User& user,
                                              const std::string& address);
  ~Path() override { stop(); }

  ucp_ep_h endpoint() const { return endpoint_; }
  // The peer's target has answered the hello.
  bool up() const { return up_; }
  bool settled() const override { return !endpoint_ || up_ || lost_; }
  // The user is not called any more.
  void disown() { user_ = nullptr; }
  // Ends everything that is under way.
  void stop();
  // Frees a failed request later: UCX 1.13 reads it again after its callback.
  void keep(void* request) { failed_.push_back(request); }

 private:
  friend class Worker;
  Path(Context& context, User& user) : Worker(context), user_(&user) {}
  void received(const Message& message);
  void endpointFailed(ucs_status_t status) override;

  User* user_;
  ucp_ep_h endpoint_ = nullptr;
  bool up_ = false;
  bool lost_ = false;
  std::vector<void*> failed_;  // requests
};

// Serves what the peer of one link asks of us, until it is destroyed. One thread uses it at a time.
class Target final : public Worker {
 public:
  // Must not outlive the context and the exports.
  static Result<std::unique_ptr<Target>> create(Context& context, Exports& exports,
                                                std::shared_ptr<Lease> lease);

  // A process that was stopped for longer than the lease must not apply what it finds when it
  // wakes up. Looked at before every request, too.
  bool expired() const { return !lease_->mayApply(); }
  // The peer has announced a hello.
  void expectHello() { expected_ = true; }
  bool settled() const override { return greeted_ || !expected_; }
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
  bool expected_ = false;
  bool greeted_ = false;
  bool refusing_ = false;
};

}  // namespace hmc::ucx
