#pragma once

#include <memory>
#include <string>

#include "transport/ucx/api.h"

namespace hmc::ucx {

// UCX's context: which devices there are. Safe from any thread.
class Context {
 public:
  static Result<std::unique_ptr<Context>> create(std::shared_ptr<const Api> api);
  ~Context() { api_->ucp_cleanup(handle_); }
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  const Api& api() const { return *api_; }
  ucp_context_h handle() const { return handle_; }
  bool knows(ucs_memory_type_t type) const { return (memoryTypes_ >> type & 1) != 0; }

 private:
  Context(std::shared_ptr<const Api> api, ucp_context_h handle)
      : api_(std::move(api)), handle_(handle) {}

  const std::shared_ptr<const Api> api_;
  const ucp_context_h handle_;
  uint64_t memoryTypes_ = 0;
};

// Told when an endpoint failed, from inside of progress().
class EndpointOwner {
 public:
  virtual ~EndpointOwner() = default;
  virtual void endpointFailed(ucs_status_t status) = 0;
};

// A set of connections that are driven together. One thread uses it at a time.
class Worker {
 public:
  // Must not outlive `context`.
  static Result<std::unique_ptr<Worker>> create(Context& context);
  // Closes whatever is connected: peers' operations end there and then.
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  const Api& api() const { return context_.api(); }
  ucp_worker_h handle() const { return handle_; }
  const std::string& address() const { return address_; }
  // Readable when there is something to do, once arm() has said that there is nothing.
  int fd() const { return fd_; }

  // True when something moved.
  bool progress() { return api().ucp_worker_progress(handle_) != 0; }
  // False when there is something to do already.
  bool arm() { return api().ucp_worker_arm(handle_) == UCS_OK; }

  // An endpoint that notices when its peer dies, and tells `owner`, who outlives it.
  Result<ucp_ep_h> connect(const std::string& address, EndpointOwner& owner);
  // Ends everything that is under way over it, possibly before it returns.
  void drop(ucp_ep_h endpoint) { close(endpoint, UCP_EP_CLOSE_FLAG_FORCE); }
  // Lets what is under way go out first, in whatever progress() follows.
  void closeGently(ucp_ep_h endpoint) { close(endpoint, 0); }

 private:
  Worker(Context& context, ucp_worker_h handle) : context_(context), handle_(handle) {}
  void close(ucp_ep_h endpoint, uint32_t flags);
  static void closed(void* request, ucs_status_t status, void* worker);

  Context& context_;
  const ucp_worker_h handle_;
  std::string address_;
  int fd_ = -1;
  int closing_ = 0;  // endpoints whose end is not over
};

}  // namespace hmc::ucx
