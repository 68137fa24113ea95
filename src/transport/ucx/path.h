#pragma once

#include <memory>
#include <string>
#include <vector>

#include "transport/ucx/wire.h"
#include "transport/ucx/worker.h"

namespace hmc::ucx {

// The worker and the endpoint over which one link's operations go. One thread uses it at a time.
class Path final : private EndpointOwner {
 public:
  // Called from inside of progress().
  class User {
   public:
    virtual void replied(const Reply& reply, const void* data, size_t size) = 0;
    virtual void lost(ucs_status_t status) = 0;

   protected:
    ~User() = default;
  };

  static Result<std::unique_ptr<Path>> create(Context& context, User& user);
  ~Path() override { stop(); }

  // Begins to send a hello to the peer's target.
  Status connect(const std::string& address);
  ucp_ep_h endpoint() const { return endpoint_; }
  // The peer's target has answered the hello.
  bool up() const { return up_; }
  // No answer to a hello is outstanding.
  bool settled() const { return !endpoint_ || up_ || lost_; }
  // The user is not called any more.
  void disown() { user_ = nullptr; }
  // Ends everything that is under way.
  void stop();
  // Frees a failed request later: UCX 1.13 reads it again after its callback.
  void keep(void* request) { failed_.push_back(request); }

  const Api& api() const { return worker_->api(); }
  ucs_status_ptr_t send(const char* header, size_t headerSize, const Bytes& bytes,
                        ucp_send_nbx_callback_t callback, void* argument) const {
    return worker_->send(endpoint_, kRequestMessage, header, headerSize, bytes, callback, argument);
  }
  int fd() const { return worker_->fd(); }
  bool progress() { return worker_->progress(); }
  bool arm() { return worker_->arm(); }

 private:
  Path(std::unique_ptr<Worker> worker, User& user) : worker_(std::move(worker)), user_(&user) {}
  static void onHelloSent(void* request, ucs_status_t status, void* path);
  static ucs_status_t onReply(void* path, const void* header, size_t headerSize, void* data,
                              size_t size, const ucp_am_recv_param_t* param);
  void endpointFailed(ucs_status_t status) override;

  std::unique_ptr<Worker> worker_;
  User* user_;
  ucp_ep_h endpoint_ = nullptr;
  bool up_ = false;
  bool lost_ = false;
  std::vector<void*> failed_;  // requests
  char hello_[Request::kSize];
};

}  // namespace hmc::ucx
