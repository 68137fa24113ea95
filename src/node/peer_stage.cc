#include "base/codec.h"
#include "memory/backends.h"
#include "memory/range_error.h"
#include "node/node_impl.h"
#include "node/peer_state.h"

// Staging for memory that a transport cannot reach: asking a peer for slots, and keeping some for
// it.

namespace hmc {

Result<std::shared_ptr<FarStage>> PeerState::stage(size_t transport, Link& link,
                                                   StagedRegion::What what, Deadline deadline) {
  const std::string request = Writer().string(what.transport).take();
  HMC_ASSIGN(const std::string reply, channel_->call(kOpenStage, request, deadline));
  HMC_ASSIGN(const auto offer, StageOffer::decode(reply));
  HMC_ASSIGN(auto memory, link.importKey(offer.key, deadline, nullptr));
  if (memory->size < offer.slots * StagePool::kSlotSize) {
    return error(Code::outOfRange, "the peer offers {} slots in {} bytes", offer.slots,
                 memory->size);
  }
  std::lock_guard lock(mutex_);
  auto& slots = slots_[transport].farSlots;
  if (!slots) slots = std::make_shared<FarSlots>(offer.slots);
  return std::shared_ptr<FarStage>(
      std::make_shared<StagedRegion>(channel_, std::move(what), slots, std::move(memory)));
}

Result<std::string> PeerState::offerStage(std::string_view request) {
  Reader in(request);
  const std::string name = in.string();
  HMC_TRY(in.finish("the request for slots"));
  HMC_ASSIGN(const size_t transport, transportCalled(name));
  std::shared_ptr<StageHost> stage;
  {
    std::lock_guard lock(mutex_);
    stage = slots_[transport].stage;
  }
  if (!stage) {
    HMC_ASSIGN(stage, StageHost::create(node_.engines()[transport]->transport()));
    std::lock_guard lock(mutex_);
    if (!ended_.ok()) return ended_;
    slots_[transport].stage = stage;
  }
  return StageOffer{stage->registration->key(), StageHost::kSlots}.encode();
}

void PeerState::copySlot(std::string_view request, control::Channel::Answered reply) {
  auto copy = startCopy(request);
  if (!copy.ok()) return reply(copy.status());
  copy->reply = std::move(reply);
  node_.slotCopies().add(*std::move(copy));
}

Result<SlotCopies::Copy> PeerState::startCopy(std::string_view request) {
  HMC_ASSIGN(const auto wanted, SlotCopy::decode(request));
  HMC_ASSIGN(const size_t transport, transportCalled(wanted.transport));
  std::shared_ptr<StageHost> stage;
  {
    std::lock_guard lock(mutex_);
    stage = slots_[transport].stage;
  }
  if (!stage)
    return error(Code::invalidArgument, "no slots were asked for over {}", wanted.transport);
  HMC_ASSIGN(auto memory, node_.registered(wanted.region, wanted.number));
  const Region whole = memory->region();
  if (!fits(wanted.offset, wanted.size, whole.size)) {
    return rangeError("copy", wanted.size, "", wanted.offset, whole.size)
        .within("region \"" + wanted.region + "\"");
  }
  if (wanted.kind == OpKind::put && memory->access() != Access::readWrite) {
    return error(Code::permissionDenied, "the region \"{}\" is registered for reading only",
                 wanted.region);
  }
  // A process that was stopped in between has been given up by now.
  if (channel_->lease()->expired())
    return error(Code::disconnected, "the copy comes after the end of the lease");
  const Region there = whole.slice(wanted.offset, wanted.size);
  HMC_ASSIGN(Backend * backend, findBackend(there.device));
  stage->pinFor(*backend);  // we are the only thread that uses it
  const Region slot = stage->slot(wanted.slot, wanted.size);
  HMC_ASSIGN(auto pending, wanted.kind == OpKind::put ? PendingCopy::start(there, slot)
                                                      : PendingCopy::start(slot, there));
  return SlotCopies::Copy{std::move(stage), std::move(memory), std::move(pending), {}};
}

}  // namespace hmc
