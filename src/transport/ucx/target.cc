#include "transport/ucx/target.h"

#include <cstring>

#include "base/error.h"

namespace hmc::ucx {

// Our answer to the origin, until UCX has sent it.
struct Target::Answer {
  const Api& api;
  char header[Reply::kSize];
  std::unique_ptr<char[]> room;
  Bytes carried;

  // Room for what it carries; not cleared, because a get fills all of it.
  char* take(size_t size) {
    room = std::make_unique_for_overwrite<char[]>(size);
    carried = {room.get(), size};
    return room.get();
  }

  static void onSent(void* request, ucs_status_t, void* answer) {
    std::unique_ptr<Answer> self(static_cast<Answer*>(answer));
    self->api.ucp_request_free(request);
  }
};

Result<std::unique_ptr<Target>> Target::create(Context& context, Exports& exports,
                                               std::shared_ptr<Lease> lease) {
  HMC_ASSIGN(auto worker, Worker::create(context));
  std::unique_ptr<Target> target(new Target(std::move(worker), exports, std::move(lease)));
  HMC_TRY(target->worker_->receive(kRequestMessage, &Target::onRequest, target.get()));
  return target;
}

ucs_status_t Target::onRequest(void* target, const void* header, size_t headerSize, void* data,
                               size_t size, const ucp_am_recv_param_t* param) {
  const bool answerable = (param->recv_attr & UCP_AM_RECV_ATTR_FIELD_REPLY_EP) != 0;
  const bool whole = (param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) == 0;
  // No honest peer sends anything else.
  if (!answerable || !whole || headerSize != Request::kSize) return UCS_OK;
  static_cast<Target*>(target)->answer(Request::unpack(header), data, size, param->reply_ep);
  return UCS_OK;
}

Status Target::apply(const Request& request, const void* data, size_t size, Answer& answer) {
  if (refusing_) return error(Code::disconnected, "the peer has closed this ucx link");
  switch (static_cast<RequestKind>(request.kind)) {
    case RequestKind::hello:
      return Status();
    case RequestKind::put:
      if (request.size != size) break;
      return exports_.use(request.region, OpKind::put, request.offset, size, [&](const Region& to) {
        row_.copy(to.ptr, data, size);
        return Status();
      });
    case RequestKind::get:
      if (request.size > kLargest || size != 0) break;
      return exports_.use(request.region, OpKind::get, request.offset, request.size,
                          [&](const Region& from) {
                            std::memcpy(answer.take(from.size), from.ptr, from.size);
                            return Status();
                          });
  }
  return error(Code::invalidArgument, "a ucx request of kind {:#x} for {} bytes came with {} bytes",
               request.kind, request.size, size);
}

void Target::answer(const Request& request, const void* data, size_t size, ucp_ep_h origin) {
  const Api& api = worker_->api();
  auto answer = std::make_unique<Answer>(Answer{api, {}, {}, {}});
  const Status status = apply(request, data, size, *answer);
  if (!status.ok()) {
    const std::string text = status.message().substr(0, kLongestError);
    text.copy(answer->take(text.size()), text.size());
  }
  Reply{request.id, static_cast<uint64_t>(status.code())}.pack(answer->header);

  const ucs_status_ptr_t sending =
      worker_->send(origin, kReplyMessage, answer->header, Reply::kSize, answer->carried,
                    &Answer::onSent, answer.get());
  if (UCS_PTR_IS_PTR(sending)) (void)answer.release();
  greeted_ = true;
}

}  // namespace hmc::ucx
