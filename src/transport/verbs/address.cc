#include "transport/verbs/address.h"

#include <algorithm>

#include "base/codec.h"

namespace hmc::verbs {

namespace {

constexpr uint32_t kMagic = 0x41425256;  // "VRBA"; another layout gets another

void write(Writer& out, const QpAddress& pair) {
  out.u8(pair.port).u32(pair.number).u32(pair.psn);
}

QpAddress readPair(Reader& in) {
  QpAddress pair;
  pair.port = in.u8();
  pair.number = in.u32();
  pair.psn = in.u32();
  return pair;
}

void write(Writer& out, const std::vector<QpAddress>& pairs) {
  out.u8(static_cast<uint8_t>(pairs.size()));
  for (const auto& pair : pairs) write(out, pair);
}

std::vector<QpAddress> readPairs(Reader& in) {
  std::vector<QpAddress> pairs(in.u8());
  for (auto& pair : pairs) pair = readPair(in);
  return pairs;
}

PortAddress readPort(Reader& in) {
  PortAddress port;
  auto gid = in.raw(port.gid.size());
  std::copy(gid.begin(), gid.end(), port.gid.begin());
  port.lid = in.u16();
  port.mtu = in.u8();
  port.readDepth = in.u8();
  port.ethernet = in.u8() != 0;
  return port;
}

bool isValid(const Address& address) {
  auto hasPort = [&](const QpAddress& pair) { return pair.port < address.ports.size(); };
  auto hasMtu = [](const PortAddress& port) { return port.mtu >= 1 && port.mtu <= 5; };
  return hasPort(address.control) && !address.outgoing.empty() && !address.incoming.empty() &&
         std::all_of(address.outgoing.begin(), address.outgoing.end(), hasPort) &&
         std::all_of(address.incoming.begin(), address.incoming.end(), hasPort) &&
         std::all_of(address.ports.begin(), address.ports.end(), hasMtu);
}

}  // namespace

std::string Address::encode() const {
  Writer out;
  out.u32(kMagic).u8(static_cast<uint8_t>(ports.size()));
  for (const PortAddress& port : ports) {
    out.raw({reinterpret_cast<const char*>(port.gid.data()), port.gid.size()});
    out.u16(port.lid).u8(port.mtu).u8(port.readDepth).u8(port.ethernet ? 1 : 0);
  }
  write(out, control);
  write(out, outgoing);
  write(out, incoming);
  return out.take();
}

Result<Address> Address::decode(std::string_view bytes) {
  Reader in(bytes);
  Address address;
  const uint32_t magic = in.u32();
  address.ports.resize(in.u8());
  for (PortAddress& port : address.ports) port = readPort(in);
  address.control = readPair(in);
  address.outgoing = readPairs(in);
  address.incoming = readPairs(in);
  HMC_TRY(in.finish("an RDMA link's address"));
  if (magic != kMagic || !isValid(address)) {
    return error(Code::invalidArgument, "these {} bytes are not an RDMA link's address",
                 bytes.size());
  }
  return address;
}

}  // namespace hmc::verbs
