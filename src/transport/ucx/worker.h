#pragma once

#include <memory>
#include <string>

#include "transport/ucx/api.h"

namespace hmc::ucx {

// What a message carries; stays until it is sent.
struct Bytes {
  const char* data = nullptr;
  size_t size = 0;
  // Sent from where it lies, else copied first.
  bool inPlace = false;
};

// UCX's context: which devices there are. Safe from any thread.
class Context {
 public:
  // Two, because UCX keeps memory registered for some time after it was told to let go. That makes
  // sending from it quick, so we ask with such a one; but peers would go on to reach it by
  // hardware, so we serve them with another, which keeps nothing.
  enum class Purpose { ask, serve };
  static Result<std::unique_ptr<Context>> create(std::shared_ptr<const Api> api, Purpose purpose);
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  const Api& api() const { return *api_; }
  ucp_context_h handle() const { return handle_; }
  // Of Bytes, which UCX copies as it sends. Without it UCX 1.13 sends larger messages from where
  // they lie, and ends the process when the connection breaks under one that goes in several
  // pieces.
  ucp_datatype_t copied() const { return copied_; }
  // Can there be lanes over which hardware puts and gets?
  bool hasHardware() const { return hasHardware_; }
  // Do the largest of our messages go in one piece over tcp, as long as the peer thinks so, too?
  bool wholeOverTcp() const { return wholeOverTcp_; }

 private:
  Context(std::shared_ptr<const Api> api, ucp_context_h handle)
      : api_(std::move(api)), handle_(handle) {}

  const std::shared_ptr<const Api> api_;
  const ucp_context_h handle_;
  ucp_datatype_t copied_ = 0;
  bool hasHardware_ = false;
  bool wholeOverTcp_ = false;
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
  // False when there is something to do already. Looks once more once it is armed: an RDMA device
  // tells of what comes after that, and soft-RoCE keeps to it. What came just before would wait for
  // ever.
  bool arm() { return api().ucp_worker_arm(handle_) == UCS_OK && !progress(); }

  // Whoever hears messages of that number. Called from inside of progress().
  Status hear(unsigned number, ucp_am_recv_callback_t callback, void* argument);
  // Sends a message whose parts stay until `told` is called, if it answers a request.
  ucs_status_ptr_t send(ucp_ep_h endpoint, unsigned number, const char* header, size_t headerSize,
                        const Bytes& bytes, ucp_send_nbx_callback_t told, void* subject) const;
  // An endpoint that notices when its peer dies, and tells `owner`, who outlives it.
  Result<ucp_ep_h> connect(const std::string& address, EndpointOwner& owner);
  // Ends everything that is under way over it, and forgets it.
  void drop(ucp_ep_h endpoint);

 private:
  Worker(Context& context, ucp_worker_h handle) : context_(context), handle_(handle) {}

  Context& context_;
  const ucp_worker_h handle_;
  std::string address_;
  int fd_ = -1;
};

}  // namespace hmc::ucx
