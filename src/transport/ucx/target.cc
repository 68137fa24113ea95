#include "transport/ucx/target.h"

#include "base/error.h"

namespace hmc::ucx {

// What we say to the origin, until UCX has sent it.
struct Target::Answer {
  const Api& api;
  char header[Reply::kSize];
  std::unique_ptr<char[]> room;
  Bytes carried;

  // Room for what it carries, which is not cleared first: a get fills all of it.
  char* take(size_t size) {
    room = std::make_unique_for_overwrite<char[]>(size);
    carried = {room.get(), size};
    return room.get();
  }

  static void over(void* request, ucs_status_t, void* answer) {
    std::unique_ptr<Answer> self(static_cast<Answer*>(answer));
    self->api.ucp_request_free(request);
  }
};

Result<std::unique_ptr<Target>> Target::create(Context& context, Areas& areas,
                                               std::shared_ptr<Lease> lease) {
  HMC_ASSIGN(auto worker, Worker::create(context));
  std::unique_ptr<Target> target(new Target(std::move(worker), areas, std::move(lease)));
  HMC_TRY(target->worker_->hear(kRequestMessage, &Target::heard, target.get()));
  return target;
}

ucs_status_t Target::heard(void* target, const void* header, size_t headerSize, void* data,
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
      return areas_.put(request.area, request.offset, data, size, row_);
    case RequestKind::get:
      if (request.size > kLargest || size != 0) break;
      return areas_.get(request.area, request.offset, answer.take(request.size), request.size);
  }
  return error(Code::invalidArgument, "a request of kind {:#x} for {} bytes came with {}",
               request.kind, request.size, size);
}

void Target::answer(const Request& request, const void* data, size_t size, ucp_ep_h origin) {
  const Api& api = worker_->api();
  auto answer = std::make_unique<Answer>(Answer{api, {}, {}, {}});
  const Status status = apply(request, data, size, *answer);
  if (!status.ok()) {
    const std::string sentence = status.message().substr(0, kLongestSentence);
    sentence.copy(answer->take(sentence.size()), sentence.size());
  }
  Reply{request.id, static_cast<uint64_t>(status.code())}.pack(answer->header);

  const ucs_status_ptr_t sending =
      worker_->send(origin, kReplyMessage, answer->header, Reply::kSize, answer->carried,
                    &Answer::over, answer.get());
  if (UCS_PTR_IS_PTR(sending)) (void)answer.release();
  greeted_ = true;
}

}  // namespace hmc::ucx
