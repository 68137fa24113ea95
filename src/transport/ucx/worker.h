#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "hmc/deadline.h"
#include "transport/ucx/library.h"

namespace hmc::ucx {

// What a message carries; stays until it is sent.
struct Bytes {
  const char* data = nullptr;
  size_t size = 0;
  // Sent without a copy.
  bool inPlace = false;
};

// UCX's context: which devices there are. Safe from any thread.
class Context {
 public:
  // UCX caches registrations after memory was unmapped. That makes sending quick, so the context
  // for our own operations does it. The one that serves peers must not: they would still reach
  // memory that we have unregistered.
  enum class Purpose { ask, serve };
  static Result<std::unique_ptr<Context>> create(std::shared_ptr<const Api> api, Purpose purpose);
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  const Api& api() const { return *api_; }
  ucp_context_h handle() const { return handle_; }
  // The datatype of Bytes, which UCX copies as it sends. Without it UCX 1.13 sends larger messages
  // without a copy, and aborts when the connection breaks under one that goes in several pieces.
  ucp_datatype_t copied() const { return copied_; }
  // Can there be lanes over which hardware puts and gets?
  bool hasHardware() const { return hasHardware_; }
  // Do our largest messages go over tcp in one piece, if the peer has the same settings?
  bool wholeOverTcp() const { return wholeOverTcp_; }
  // UCX keeps it for good, because a worker of it was abandoned.
  void abandon() { abandoned_ = true; }

 private:
  Context(std::shared_ptr<const Api> api, ucp_context_h handle)
      : api_(std::move(api)), handle_(handle) {}

  const std::shared_ptr<const Api> api_;
  const ucp_context_h handle_;
  ucp_datatype_t copied_ = 0;
  bool hasHardware_ = false;
  bool wholeOverTcp_ = false;
  std::atomic<bool> abandoned_{false};
};

// Called when an endpoint has failed, from inside of progress().
class EndpointOwner {
 public:
  virtual ~EndpointOwner() = default;
  virtual void endpointFailed(ucs_status_t status) = 0;
};

// A set of connections that are driven together. One thread uses it at a time.
class Worker {
 public:
  // Closes every connection: operations of peers end with it.
  virtual ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  const Api& api() const { return context_.api(); }
  const std::string& address() const { return address_; }
  // Readable when there is something to do, once arm() has said that there is nothing.
  int fd() const { return fd_; }

  // True when something moved.
  bool progress() { return api().ucp_worker_progress(handle_) != 0; }
  // False when there is something to do already. Polls once more after arming: soft-RoCE announces
  // only completions that come after it, so one that came just before would wait forever.
  bool arm() { return api().ucp_worker_arm(handle_) == UCS_OK && !progress(); }
  // No answer to a hello is outstanding, neither from the peer nor from us.
  virtual bool settled() const = 0;
  // Never destroys it, nor moves it along: the only safe end of a worker that is not settled. UCX
  // 1.13 aborts the process that has not sent an answer yet when its worker or connection ends.
  void abandon();

  // If it answers a request, the message's parts have to stay until `callback` is called.
  ucs_status_ptr_t send(ucp_ep_h endpoint, unsigned number, const void* header, size_t headerSize,
                        const Bytes& bytes, ucp_send_nbx_callback_t callback, void* argument) const;

 protected:
  // What came from a peer. `data` is good until received() returns.
  struct Message {
    std::string_view header;
    const void* data;
    size_t size;
    ucp_ep_h replyTo;  // null when it cannot be answered
  };

  // Must not outlive `context`.
  explicit Worker(Context& context) : context_(context) {}
  // The last step of making one: from now on self.received(Message) gets the active messages of
  // that number, from inside of progress().
  template <class Self>
  Status open(unsigned number, Self& self) {
    return open(
        number,
        [](void* worker, const void* header, size_t headerSize, void* data, size_t size,
           const ucp_am_recv_param_t* param) {
          const bool answerable = (param->recv_attr & UCP_AM_RECV_ATTR_FIELD_REPLY_EP) != 0;
          // No honest peer sends one that is not here as a whole.
          if ((param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) == 0) {
            static_cast<Self*>(worker)->received({{static_cast<const char*>(header), headerSize},
                                                  data,
                                                  size,
                                                  answerable ? param->reply_ep : nullptr});
          }
          return UCS_OK;
        },
        &self);
  }
  // Sends a message whose arrival nobody waits for, and keeps it until then.
  ucs_status_t post(ucp_ep_h endpoint, unsigned number, std::string_view header,
                    std::unique_ptr<char[]> bytes = nullptr, size_t size = 0) const;
  // An endpoint that notices when its peer dies, and calls `owner`, which outlives it.
  Result<ucp_ep_h> connect(const std::string& address, EndpointOwner& owner);
  // Ends everything that is under way over it, and forgets it.
  void drop(ucp_ep_h endpoint);

 private:
  Status open(unsigned number, ucp_am_recv_callback_t callback, void* argument);

  Context& context_;
  ucp_worker_h handle_ = nullptr;
  std::string address_;
  int fd_ = -1;
};

// Workers that were closed before a hello was answered: they stay until the answer has come, and
// are abandoned if it does not. No operation is under way over them. Safe from any thread.
class Draining {
 public:
  Draining() = default;
  ~Draining();
  Draining(const Draining&) = delete;
  Draining& operator=(const Draining&) = delete;

  void add(std::unique_ptr<Worker> worker, Deadline deadline);
  // Moves them along, and lets go of those that are settled or have timed out. False when none is
  // left.
  bool step();

 private:
  struct Entry {
    std::unique_ptr<Worker> worker;
    Deadline deadline;
  };
  std::mutex mutex_;
  std::vector<Entry> all_;  // guarded by mutex_
};

}  // namespace hmc::ucx
