#include "node/local_memory.h"

#include <algorithm>

#include "base/codec.h"
#include "control/greeting.h"
#include "memory/backends.h"
#include "node/node_impl.h"

namespace hmc {

namespace {

Result<DeviceKind> kindFromName(const std::string& name) {
  if (const DeviceKind* kind = findDeviceKind(name)) return *kind;
  return error(Code::unsupported,
               "the peer has memory on a device of kind \"{}\", which this version does not know",
               name);
}

}  // namespace

std::shared_ptr<LocalMemory> LocalMemory::create(std::shared_ptr<NodeImpl> node, std::string name,
                                                 const Region& region, Access access, bool owned,
                                                 std::shared_ptr<const void> owner) {
  return std::shared_ptr<LocalMemory>(
      new LocalMemory(std::move(node), std::move(name), region, access, owned, std::move(owner)));
}

LocalMemory::LocalMemory(std::shared_ptr<NodeImpl> node, std::string name, const Region& region,
                         Access access, bool owned, std::shared_ptr<const void> owner)
    : owner_(std::move(owner)),
      node_(std::move(node)),
      name_(std::move(name)),
      region_(region),
      host_(region.device.isHost() ? region.at(0) : nullptr),
      access_(access),
      owned_(owned),
      number_(node_->nextMemoryNumber()),
      slots_(node_->engines().size()) {
  for (size_t i = 0; i < slots_.size(); ++i) {
    if (!node_->onlyByName(i)) through(i);
  }
}

void LocalMemory::fill(Slot& slot, size_t transport) const {
  std::call_once(slot.once, [&] {
    registerThrough(slot.entry, transport);
    slot.filled.store(true, std::memory_order_release);
  });
}

// What cannot be registered stays out of peers' reach over that transport; our own transfers from
// it can still pass through slots that can.
void LocalMemory::registerThrough(Entry& entry, size_t transport) const {
  const Engine& engine = *node_->engines()[transport];
  entry.staged = !engine.touches(region_.device.kind);
  auto registration = engine.transport().registerRegion(region_, access_);
  if (registration.ok()) {
    entry.registration = *std::move(registration);
  } else {
    entry.why = registration.status();
    entry.staged = true;
  }
}

LocalMemory::~LocalMemory() {
  node_->forget(*this);
  slots_.clear();
  if (!owned_) return;
  if (auto backend = findBackend(region_.device.kind); backend.ok())
    (*backend)->release(region_.ptr);
}

std::string LocalMemory::describe(const std::vector<std::string>& transports) const {
  Writer out;
  out.u64(region_.size).string(deviceKindName(region_.device.kind));
  out.u32(static_cast<uint32_t>(region_.device.index)).u8(static_cast<uint8_t>(access_));
  out.u64(number_);
  Writer offers;
  uint32_t count = 0;
  for (size_t i = 0; i < slots_.size(); ++i) {
    const std::string& name = node_->factsOf(i).name;
    if (std::find(transports.begin(), transports.end(), name) == transports.end()) continue;
    const Entry& entry = through(i);
    offers.string(name).u8(static_cast<uint8_t>(entry.why.code()));
    offers.string(entry.registration ? entry.registration->key() : entry.why.message());
    ++count;
  }
  return out.u32(count).raw(offers.bytes()).take();
}

Result<RegionDescription> RegionDescription::decode(std::string_view bytes) {
  Reader in(bytes);
  RegionDescription region;
  region.size = in.u64();
  std::string kind = in.string();
  region.device.index = static_cast<int>(in.u32());
  region.access =
      in.u8() == static_cast<uint8_t>(Access::readWrite) ? Access::readWrite : Access::read;
  region.number = in.u64();
  for (uint32_t left = in.u32(); left > 0 && !in.failed(); --left) {
    RegionDescription::Offer offer;
    offer.transport = in.string();
    const uint8_t code = in.u8();
    std::string text = in.string();
    if (code == 0) {
      offer.key = std::move(text);
    } else {
      offer.why = Status(decodeCode(code), std::move(text));
    }
    region.offers.push_back(std::move(offer));
  }
  HMC_TRY(in.finish("the peer's description of its region"));
  HMC_ASSIGN(region.device.kind, kindFromName(kind));
  return region;
}

const RegionDescription::Offer* RegionDescription::offerFor(const std::string& transport) const {
  for (const auto& offer : offers) {
    if (offer.transport == transport) return &offer;
  }
  return nullptr;
}

}  // namespace hmc
