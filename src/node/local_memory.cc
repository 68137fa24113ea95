#include "node/local_memory.h"

#include "base/codec.h"
#include "memory/backends.h"
#include "node/node_impl.h"

namespace hmc {

namespace {

Result<DeviceKind> kindFromName(const std::string& name) {
  for (int i = 0; i <= static_cast<int>(DeviceKind::musa); ++i) {
    auto kind = static_cast<DeviceKind>(i);
    if (name == deviceKindName(kind)) return kind;
  }
  return error(Code::unsupported,
               "the peer has memory on a device of kind \"{}\", which this version does not know",
               name);
}

}  // namespace

std::shared_ptr<LocalMemory> LocalMemory::create(std::shared_ptr<NodeImpl> node, std::string name,
                                                 const Region& region, Access access, bool owned) {
  return std::shared_ptr<LocalMemory>(
      new LocalMemory(std::move(node), std::move(name), region, access, owned));
}

LocalMemory::LocalMemory(std::shared_ptr<NodeImpl> node, std::string name, const Region& region,
                         Access access, bool owned)
    : node_(std::move(node)),
      name_(std::move(name)),
      region_(region),
      host_(region.device.isHost() ? region.at(0) : nullptr),
      access_(access),
      owned_(owned) {
  for (const auto& engine : node_->engines()) {
    Entry entry;
    entry.staged = !engine->touches(region.device.kind);
    auto registration = engine->transport().registerRegion(region, access);
    if (registration.ok()) {
      entry.registration = *std::move(registration);
    } else {
      entry.why = registration.status();
    }
    entries_.push_back(std::move(entry));
  }
}

LocalMemory::~LocalMemory() {
  node_->forget(*this);
  entries_.clear();
  if (!owned_) return;
  if (auto backend = findBackend(region_.device.kind); backend.ok())
    (*backend)->release(region_.ptr);
}

std::string LocalMemory::describe() const {
  Writer out;
  out.u64(region_.size).string(deviceKindName(region_.device.kind));
  out.u32(static_cast<uint32_t>(region_.device.index)).u8(static_cast<uint8_t>(access_));
  Writer keys;
  uint32_t count = 0;
  for (size_t i = 0; i < entries_.size(); ++i) {
    if (!entries_[i].registration) continue;
    keys.string(node_->engines()[i]->transport().facts().name)
        .string(entries_[i].registration->key());
    ++count;
  }
  return out.u32(count).raw(keys.bytes()).take();
}

Result<RegionDescription> RegionDescription::decode(std::string_view bytes) {
  Reader in(bytes);
  RegionDescription region;
  region.size = in.u64();
  std::string kind = in.string();
  region.device.index = static_cast<int>(in.u32());
  region.access =
      in.u8() == static_cast<uint8_t>(Access::readWrite) ? Access::readWrite : Access::read;
  for (uint32_t left = in.u32(); left > 0 && !in.failed(); --left) {
    std::string transport = in.string();
    region.keys.push_back({std::move(transport), in.string()});
  }
  HMC_TRY(in.finish("the peer's description of its region"));
  HMC_ASSIGN(region.device.kind, kindFromName(kind));
  return region;
}

const std::string* RegionDescription::keyFor(const std::string& transport) const {
  for (const auto& key : keys) {
    if (key.transport == transport) return &key.bytes;
  }
  return nullptr;
}

}  // namespace hmc
