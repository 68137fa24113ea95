#include "node/served_call.h"

#include "base/codec.h"
#include "base/error.h"
#include "control/message_window.h"

namespace hmc {

std::string encodeUserCall(const std::string& name, const std::string& bytes) {
  return Writer().string(name).raw(bytes).take();
}

Result<std::shared_ptr<ServedCall>> ServedCall::accept(const std::shared_ptr<PeerState>& peer,
                                                       std::string_view request) {
  Reader in(request);
  std::string name = in.string();
  const std::string_view bytes = in.raw(in.left());
  HMC_TRY(in.finish("a call"));
  const size_t cost = control::messageCost(request.size());
  std::atomic<size_t>& unanswered = peer->unansweredBytes();
  if (unanswered.fetch_add(cost) + cost > kMostUnanswered) {
    unanswered -= cost;
    return error(Code::exhausted,
                 "calls of {} bytes wait for an answer, and {} is the most for one peer",
                 unanswered.load(), kMostUnanswered);
  }
  return std::shared_ptr<ServedCall>(
      new ServedCall(peer, std::move(name), std::string(bytes), cost));
}

ServedCall::ServedCall(std::shared_ptr<PeerState> peer, std::string name, std::string bytes,
                       size_t cost)
    : peer_(std::move(peer)), name_(std::move(name)), bytes_(std::move(bytes)), cost_(cost) {}

ServedCall::~ServedCall() {
  (void)answer(error(Code::failed, "the call \"{}\" was dropped without an answer", name_));
  peer_->unansweredBytes() -= cost_;
}

Status ServedCall::answer(Result<std::string> answer) {
  if (answer.ok() && answer->size() > control::kLargestMessage) {
    return error(Code::invalidArgument, "an answer of {} bytes to the call \"{}\": {} is the most",
                 answer->size(), name_, control::kLargestMessage);
  }
  if (answered_.exchange(true))
    return error(Code::alreadyExists, "the call \"{}\" was answered before", name_);
  if (reply_) reply_(std::move(answer));
  return Status();
}

}  // namespace hmc
