#include "pool/record.h"

#include "base/codec.h"
#include "base/error.h"

namespace hmc::pool {

std::string Record::encode() const {
  Writer out;
  out.string(address).string(node).string(host).string(layout);
  for (uint64_t size : sizes) out.u64(size);
  out.string(deviceKindName(device));
  return out.take();
}

Result<Record> Record::decode(std::string_view bytes) {
  Reader in(bytes);
  Record record;
  record.address = in.string();
  record.node = in.string();
  record.host = in.string();
  record.layout = in.string();
  for (uint64_t& size : record.sizes) size = in.u64();
  const std::string kind = in.string();
  HMC_TRY(in.finish("the record of a pool's member"));
  const DeviceKind* known = findDeviceKind(kind);
  if (!known) {
    return error(Code::unsupported,
                 "a member has memory of the kind \"{}\", which this version does not know", kind);
  }
  record.device = *known;
  return record;
}

}  // namespace hmc::pool
