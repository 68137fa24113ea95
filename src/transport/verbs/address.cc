#include "transport/verbs/address.h"

#include <algorithm>

#include "base/codec.h"

namespace hmc::verbs {

namespace {

constexpr uint32_t kMagic = 0x41425256;  // "VRBA"; another layout gets another

void write(Writer& out, const Address::Pair& pair) {
  out.u8(pair.place).u32(pair.number).u32(pair.firstPacket);
}

Address::Pair readPair(Reader& in) {
  Address::Pair pair;
  pair.place = in.u8();
  pair.number = in.u32();
  pair.firstPacket = in.u32();
  return pair;
}

void write(Writer& out, const std::vector<Address::Pair>& pairs) {
  out.u8(static_cast<uint8_t>(pairs.size()));
  for (const auto& pair : pairs) write(out, pair);
}

std::vector<Address::Pair> readPairs(Reader& in) {
  std::vector<Address::Pair> pairs(in.u8());
  for (auto& pair : pairs) pair = readPair(in);
  return pairs;
}

Address::Place readPlace(Reader& in) {
  Address::Place place;
  auto gid = in.raw(place.gid.size());
  std::copy(gid.begin(), gid.end(), place.gid.begin());
  place.lid = in.u16();
  place.mtu = in.u8();
  place.readDepth = in.u8();
  place.ethernet = in.u8() != 0;
  return place;
}

bool makesSense(const Address& address) {
  auto placed = [&](const Address::Pair& pair) { return pair.place < address.places.size(); };
  auto fast = [](const Address::Place& place) { return place.mtu >= 1 && place.mtu <= 5; };
  return placed(address.words) && !address.outgoing.empty() && !address.incoming.empty() &&
         std::all_of(address.outgoing.begin(), address.outgoing.end(), placed) &&
         std::all_of(address.incoming.begin(), address.incoming.end(), placed) &&
         std::all_of(address.places.begin(), address.places.end(), fast);
}

}  // namespace

std::string Address::encode() const {
  Writer out;
  out.u32(kMagic).u8(static_cast<uint8_t>(places.size()));
  for (const Place& place : places) {
    out.raw({reinterpret_cast<const char*>(place.gid.data()), place.gid.size()});
    out.u16(place.lid).u8(place.mtu).u8(place.readDepth).u8(place.ethernet ? 1 : 0);
  }
  write(out, words);
  write(out, outgoing);
  write(out, incoming);
  return out.take();
}

Result<Address> Address::decode(std::string_view bytes) {
  Reader in(bytes);
  Address address;
  const uint32_t magic = in.u32();
  address.places.resize(in.u8());
  for (Place& place : address.places) place = readPlace(in);
  address.words = readPair(in);
  address.outgoing = readPairs(in);
  address.incoming = readPairs(in);
  HMC_TRY(in.finish("an RDMA link's address"));
  if (magic != kMagic || !makesSense(address)) {
    return error(Code::invalidArgument, "these {} bytes are not an RDMA link's address",
                 bytes.size());
  }
  return address;
}

}  // namespace hmc::verbs
