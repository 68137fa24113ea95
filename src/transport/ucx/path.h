#pragma once

#include <memory>
#include <string>
#include <vector>

#include "transport/ucx/wire.h"
#include "transport/ucx/worker.h"

namespace hmc::ucx {

// The worker and the endpoint over which one link's operations go. One thread uses it at a time.
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

}  // namespace hmc::ucx
