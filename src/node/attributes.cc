#include "node/attributes.h"

#include "base/codec.h"

namespace hmc {

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
    std::string name = in.string();
    attributes.transports.push_back({std::move(name), in.string()});
  }
  bool hasRank = in.u8() != 0;
  uint32_t rank = in.u32();
  if (hasRank) attributes.rank = rank;
  for (uint32_t left = in.u32(); left > 0 && !in.failed(); --left) {
    std::string label = in.string();
    attributes.listeners.push_back({std::move(label), in.u16()});
  }
  HMC_TRY(in.finish("the peer's introduction"));
  return attributes;
}

}  // namespace hmc
