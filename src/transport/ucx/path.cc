#include "transport/ucx/path.h"

#include <cstring>

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

Result<std::unique_ptr<Target>> Target::create(Context& context, Exports& exports,
                                               std::shared_ptr<Lease> lease) {
  std::unique_ptr<Target> target(new Target(context, exports, std::move(lease)));
  HMC_TRY(target->open(kRequestMessage, *target));
  return target;
}

void Target::received(const Message& message) {
  // No honest peer sends anything else.
  if (!message.replyTo || message.header.size() != sizeof(Request)) return;
  const Request request = fromWire<Request>(message.header);
  Answer answer;
  const Status status = apply(request, message, answer);
  if (!status.ok()) {
    const std::string text = status.message().substr(0, kLongestError);
    text.copy(answer.take(text.size()), text.size());
  }
  const Reply reply = swapped(Reply{request.id, static_cast<uint64_t>(status.code())});
  post(message.replyTo, kReplyMessage, {reinterpret_cast<const char*>(&reply), sizeof(reply)},
       std::move(answer.bytes), answer.size);
  greeted_ = true;
}

Status Target::apply(const Request& request, const Message& message, Answer& answer) {
  if (refusing_) return error(Code::disconnected, "the peer has closed this ucx link");
  // Before each of them: one progress() may find many, and its process be stopped in between.
  if (expired())
    return error(Code::disconnected, "the peer has heard nothing from us for too long");
  switch (request.kind) {
    case RequestKind::hello:
      return Status();
    case RequestKind::put:
      if (request.size != message.size) break;
      return exports_.use(request.region, OpKind::put, request.offset, request.size,
                          [&](const Region& to) {
                            row_.copy(to.ptr, message.data, to.size);
                            return Status();
                          });
    case RequestKind::get:
      if (request.size > kLargest || message.size != 0) break;
      return exports_.use(request.region, OpKind::get, request.offset, request.size,
                          [&](const Region& from) {
                            std::memcpy(answer.take(from.size), from.ptr, from.size);
                            return Status();
                          });
  }
  return error(Code::invalidArgument, "a ucx request of kind {:#x} for {} bytes came with {} bytes",
               static_cast<uint64_t>(request.kind), request.size, message.size);
}

}  // namespace hmc::ucx
