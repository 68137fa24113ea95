#include "node/descriptions.h"

#include "base/codec.h"
#include "base/error.h"
#include "base/text.h"
#include "control/handshake.h"

namespace hmc {

Result<DeviceKind> kindFromName(const std::string& name) {
  if (const DeviceKind* kind = findDeviceKind(name)) return *kind;
  return error(Code::unsupported,
               "the peer has memory on a device of kind \"{}\", which this version does not know",
               printable(name));
}

std::string Attributes::encode() const {
  Writer out;
  out.u32(static_cast<uint32_t>(transports.size()));
  for (const auto& offer : transports) out.string(offer.name).string(offer.domain);
  out.u8(rank.has_value() ? 1 : 0).u32(rank.value_or(0));
  out.u32(static_cast<uint32_t>(listeners.size()));
  for (const auto& listener : listeners) out.string(listener.label).u16(listener.port);
  return out.take();
}

Result<Attributes> Attributes::decode(std::string_view bytes) {
  Reader in(bytes);
  Attributes attributes;
  for (uint32_t left = in.u32(); left > 0 && !in.failed(); --left) {
    std::string name = printable(in.string());
    attributes.transports.push_back({std::move(name), printable(in.string())});
  }
  bool hasRank = in.u8() != 0;
  uint32_t rank = in.u32();
  if (hasRank) attributes.rank = rank;
  for (uint32_t left = in.u32(); left > 0 && !in.failed(); --left) {
    std::string label = printable(in.string());
    attributes.listeners.push_back({std::move(label), in.u16()});
  }
  HMC_TRY(in.finish("the peer's introduction"));
  return attributes;
}

std::string RegionDescription::encode() const {
  Writer out;
  out.u64(size).string(deviceKindName(device.kind));
  out.u32(static_cast<uint32_t>(device.index)).u8(static_cast<uint8_t>(access)).u64(number);
  out.u32(static_cast<uint32_t>(offers.size()));
  for (const Offer& offer : offers) {
    out.string(offer.transport).u8(static_cast<uint8_t>(offer.why.code()));
    out.string(offer.why.ok() ? offer.key : offer.why.message());
  }
  return out.take();
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
      offer.why = Status(control::decodeCode(code), printable(text));
    }
    region.offers.push_back(std::move(offer));
  }
  HMC_TRY(in.finish("the peer's description of its region"));
  HMC_ASSIGN(region.device.kind, kindFromName(kind));
  return region;
}

}  // namespace hmc
