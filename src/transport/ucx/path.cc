#include "transport/ucx/path.h"

#include "base/error.h"

namespace hmc::ucx {

Result<std::unique_ptr<Path>> Path::create(Context& context, User& user,
                                           const std::string& address) {
  std::unique_ptr<Path> path(new Path(context, user));
  HMC_TRY(path->open(kReplyMessage, *path));
  HMC_ASSIGN(path->endpoint_, path->connect(address, *path));
  const Request hello = swapped(Request{RequestKind::hello, kHelloId, 0, 0, 0});
  const ucs_status_t status = path->post(path->endpoint_, kRequestMessage,
                                         {reinterpret_cast<const char*>(&hello), sizeof(hello)});
  if (UCS_STATUS_IS_ERR(status)) path->endpointFailed(status);
  return path;
}

// The worker has to go with the endpoint: UCX (1.13 to 1.22, over tcp) crashes on what still
// arrives for an endpoint that was closed in a worker that lives on.
void Path::stop() {
  disown();
  if (endpoint_) drop(std::exchange(endpoint_, nullptr));
  for (void* request : std::exchange(failed_, {})) api().ucp_request_free(request);
}

void Path::received(const Message& message) {
  if (message.header.size() != sizeof(Reply)) return;
  const Reply reply = fromWire<Reply>(message.header);
  if (reply.id == kHelloId && reply.code == 0) {
    up_ = true;
  } else if (reply.id == kHelloId) {
    endpointFailed(UCS_ERR_REJECTED);
  } else if (user_) {
    user_->replied(reply, message.data, message.size);
  }
}

void Path::endpointFailed(ucs_status_t status) {
  lost_ = true;
  if (user_) user_->endpointFailed(status);
}

}  // namespace hmc::ucx
