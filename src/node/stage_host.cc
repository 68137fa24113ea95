#include "node/stage_host.h"

#include "base/codec.h"
#include "memory/backends.h"

namespace hmc {

Result<std::shared_ptr<StageHost>> StageHost::create(Transport& transport) {
  auto stage = std::make_shared<StageHost>();
  HMC_ASSIGN(stage->host, hostBackend().allocate(0, kSlots * StagePool::kSlotSize));
  stage->pins.pinForAll(stage->host);
  HMC_ASSIGN(stage->registration, transport.registerRegion(stage->host, Access::readWrite));
  return stage;
}

StageHost::~StageHost() {
  registration.reset();
  pins.clear();
  if (host.ptr) hostBackend().release(host.ptr);
}

std::string StageOffer::encode() const {
  return Writer().string(key).u32(slots).u64(StagePool::kSlotSize).take();
}

Result<StageOffer> StageOffer::decode(std::string_view bytes) {
  Reader in(bytes);
  StageOffer offer;
  offer.key = in.string();
  offer.slots = in.u32();
  const uint64_t size = in.u64();
  HMC_TRY(in.finish("the peer's offer of slots"));
  constexpr uint32_t kMost = 1024;
  if (offer.slots == 0 || offer.slots > kMost || size != StagePool::kSlotSize) {
    return error(Code::unsupported, "the peer offers {} slots of {} bytes; 1 to {} of {} work",
                 offer.slots, size, kMost, StagePool::kSlotSize);
  }
  return offer;
}

std::string SlotCopy::encode() const {
  return Writer()
      .u8(static_cast<uint8_t>(kind))
      .string(transport)
      .u32(slot)
      .string(region)
      .u64(number)
      .u64(offset)
      .u64(size)
      .take();
}

Result<SlotCopy> SlotCopy::decode(std::string_view bytes) {
  Reader in(bytes);
  SlotCopy copy;
  const uint8_t kind = in.u8();
  copy.transport = in.string();
  copy.slot = in.u32();
  copy.region = in.string();
  copy.number = in.u64();
  copy.offset = in.u64();
  copy.size = in.u64();
  HMC_TRY(in.finish("the request for a copy"));
  if (kind > static_cast<uint8_t>(OpKind::get)) {
    return error(Code::invalidArgument, "{} is neither put (0) nor get (1)", kind);
  }
  if (copy.slot >= StageHost::kSlots || copy.size > StagePool::kSlotSize) {
    return error(Code::outOfRange, "{} bytes of slot {}: there are {} slots of {} bytes", copy.size,
                 copy.slot, StageHost::kSlots, StagePool::kSlotSize);
  }
  copy.kind = static_cast<OpKind>(kind);
  return copy;
}

}  // namespace hmc
