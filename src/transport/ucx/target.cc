#include "transport/ucx/target.h"

#include <cstring>

#include "base/error.h"

namespace hmc::ucx {

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
