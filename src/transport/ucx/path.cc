#include "transport/ucx/path.h"

#include "base/error.h"

namespace hmc::ucx {

namespace {

const Bytes kNothing;

}  // namespace

Result<std::unique_ptr<Path>> Path::create(Context& context, User& user) {
  HMC_ASSIGN(auto worker, Worker::create(context));
  std::unique_ptr<Path> path(new Path(std::move(worker), user));
  HMC_TRY(path->worker_->receive(kReplyMessage, &Path::onReply, path.get()));
  return path;
}

// The worker has to go with the endpoint: UCX (1.13 to 1.22, over tcp) crashes on what still
// arrives for an endpoint that was closed in a worker that lives on.
void Path::stop() {
  disown();
  if (endpoint_) worker_->drop(std::exchange(endpoint_, nullptr));
  for (void* request : std::exchange(failed_, {})) api().ucp_request_free(request);
}

Status Path::connect(const std::string& address) {
  HMC_ASSIGN(endpoint_, worker_->connect(address, *this));
  Request hello;
  hello.kind = static_cast<uint64_t>(RequestKind::hello);
  hello.id = kHelloId;
  hello.pack(hello_);
  const ucs_status_ptr_t request = send(hello_, Request::kSize, kNothing, &Path::onHelloSent, this);
  if (UCS_PTR_IS_ERR(request)) endpointFailed(UCS_PTR_STATUS(request));
  return Status();
}

void Path::onHelloSent(void* request, ucs_status_t status, void* path) {
  auto* self = static_cast<Path*>(path);
  self->api().ucp_request_free(request);
  if (status != UCS_OK) self->endpointFailed(status);
}

ucs_status_t Path::onReply(void* path, const void* header, size_t headerSize, void* data,
                           size_t size, const ucp_am_recv_param_t* param) {
  auto* self = static_cast<Path*>(path);
  const bool whole = (param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) == 0;
  if (headerSize != Reply::kSize || !whole) return UCS_OK;
  const Reply reply = Reply::unpack(header);
  if (reply.id == kHelloId && reply.code == 0) {
    self->up_ = true;
  } else if (reply.id == kHelloId) {
    self->endpointFailed(UCS_ERR_REJECTED);
  } else if (self->user_) {
    self->user_->replied(reply, data, size);
  }
  return UCS_OK;
}

void Path::endpointFailed(ucs_status_t status) {
  lost_ = true;
  if (user_) user_->lost(status);
}

}  // namespace hmc::ucx
