#include "memory/backend.h"

#include "base/error.h"

namespace hmc {

std::string DeviceUuid::toString() const {
  std::string text;
  for (size_t i = 0; i < bytes.size(); ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += fmt::format("{:02x}", bytes[i]);
  }
  return text;
}

Status Backend::checkIndex(int index) const {
  const int count = facts_.deviceCount();
  if (index >= 0 && index < count) return Status();
  return error(Code::invalidArgument, "device {}:{} does not exist: {} has {} {}",
               deviceKindName(facts_.kind), index, facts_.name, count,
               count == 1 ? "device" : "devices");
}

Result<int> Backend::indexOf(const DeviceUuid& device) const {
  for (int index = 0; index < facts_.deviceCount(); ++index) {
    if (facts_.devices[static_cast<size_t>(index)].uuid == device) return index;
  }
  return error(Code::unsupported,
               "{} device {} is not visible to this process, which sees {} of that kind; let both "
               "processes see it (CUDA_VISIBLE_DEVICES and its kin)",
               deviceKindName(facts_.kind), device.toString(), facts_.deviceCount());
}

Status Backend::checkCopy(const CopyBatch& batch, const DeviceQueue& queue) const {
  const Device to = batch.to.device;
  const Device from = batch.from.device;
  for (const Device* side : {&to, &from}) {
    if (side->isHost()) continue;
    if (side->kind != facts_.kind) {
      return error(Code::invalidArgument, "{} cannot reach {}", facts_.name, side->toString());
    }
    HMC_TRY(checkIndex(side->index));
  }
  if (to.isHost() && from.isHost() && facts_.kind != DeviceKind::cpu) {
    return error(Code::invalidArgument, "{} does not copy within the host", facts_.name);
  }
  if ((queue.device != to && queue.device != from) || queue.device.kind != facts_.kind ||
      queue.lane >= DeviceQueue::kLanes) {
    return error(Code::invalidArgument, "queue {} of {} cannot copy from {} to {}", queue.lane,
                 queue.device.toString(), from.toString(), to.toString());
  }
  return Status();
}

Status Backend::checkPinnable(const Region& host) {
  if (host.device.isHost() && host.ptr && host.size > 0) return Status();
  return error(Code::invalidArgument, "{} bytes at {} on {} cannot be pinned: host memory can",
               host.size, host.ptr, host.device.toString());
}

}  // namespace hmc
