#include "transport/verbs/address.h"

#include <arpa/inet.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/codec.h"
#include "base/error.h"

namespace hmc::verbs {

namespace {

constexpr uint32_t kMagic = 0x41425256;  // "VRBA"; another layout gets another

void write(Writer& out, const QpAddress& pair) {
  out.u8(pair.port).u32(pair.number).u32(pair.psn);
}

QpAddress readPair(Reader& in) {
  return {in.u8(), in.u32(), in.u32()};
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
  GidBytes bytes{};
  const auto gid = in.raw(bytes.size());
  std::copy(gid.begin(), gid.end(), bytes.begin());
  return {bytes, in.u16(), in.u8(), in.u8(), in.u8() != 0};
}

bool isValid(const Address& address) {
  auto hasPort = [&](const QpAddress& pair) { return pair.port < address.ports.size(); };
  auto hasMtu = [](const PortAddress& port) { return port.mtu >= 1 && port.mtu <= 5; };
  return hasPort(address.control) && !address.outgoing.empty() && !address.incoming.empty() &&
         std::all_of(address.outgoing.begin(), address.outgoing.end(), hasPort) &&
         std::all_of(address.incoming.begin(), address.incoming.end(), hasPort) &&
         std::all_of(address.ports.begin(), address.ports.end(), hasMtu);
}

std::string firstLine(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// "0000:0000:0000:0000:0000:ffff:0a08:0001"
bool parse(const std::string& text, GidBytes& bytes) {
  unsigned words[8];
  if (std::sscanf(text.c_str(), "%4x:%4x:%4x:%4x:%4x:%4x:%4x:%4x", &words[0], &words[1], &words[2],
                  &words[3], &words[4], &words[5], &words[6], &words[7]) != 8) {
    return false;
  }
  for (size_t i = 0; i < 8; ++i) {
    bytes[2 * i] = static_cast<uint8_t>(words[i] >> 8);
    bytes[2 * i + 1] = static_cast<uint8_t>(words[i]);
  }
  return std::any_of(bytes.begin(), bytes.end(), [](uint8_t byte) { return byte != 0; });
}

Gid::Kind kindOf(const std::string& type, bool ethernet) {
  if (type == "RoCE v2") return Gid::Kind::roce2;
  return ethernet ? Gid::Kind::roce1 : Gid::Kind::infiniband;
}

int rank(const Gid& gid) {
  if (gid.kind == Gid::Kind::roce1) return 3;
  if (gid.kind == Gid::Kind::infiniband || gid.isIpv4()) return 0;
  return gid.isLinkLocal() ? 2 : 1;
}

}  // namespace

bool Gid::isIpv4() const {
  constexpr uint8_t kMapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  return std::memcmp(bytes.data(), kMapped, sizeof(kMapped)) == 0;
}

bool Gid::isLinkLocal() const {
  return bytes[0] == 0xfe && (bytes[1] & 0xc0) == 0x80;
}

std::string Gid::toString() const {
  char text[INET6_ADDRSTRLEN] = "";
  const bool v4 = isIpv4();
  inet_ntop(v4 ? AF_INET : AF_INET6, bytes.data() + (v4 ? 12 : 0), text, sizeof(text));
  return text;
}

const char* gidKindName(Gid::Kind kind) {
  constexpr const char* kNames[] = {"InfiniBand", "RoCE v1", "RoCE v2"};
  return kNames[static_cast<size_t>(kind)];
}

std::vector<Gid> readGids(const std::string& sysfs, const std::string& device, int port) {
  const std::string folder = fmt::format("{}/class/infiniband/{}/ports/{}", sysfs, device, port);
  const bool ethernet = firstLine(folder + "/link_layer") == "Ethernet";
  std::vector<Gid> gids;
  std::error_code failed;
  for (const auto& entry : std::filesystem::directory_iterator(folder + "/gids", failed)) {
    Gid gid;
    const std::string index = entry.path().filename().string();
    if (std::sscanf(index.c_str(), "%d", &gid.index) != 1) continue;
    if (!parse(firstLine(entry.path().string()), gid.bytes)) continue;
    gid.kind = kindOf(firstLine(fmt::format("{}/gid_attrs/types/{}", folder, index)), ethernet);
    gids.push_back(gid);
  }
  std::sort(gids.begin(), gids.end(), [](const Gid& a, const Gid& b) { return a.index < b.index; });
  return gids;
}

Result<Gid> chooseGid(const std::vector<Gid>& gids, std::optional<int> wanted,
                      const std::string& port) {
  if (gids.empty()) return error(Code::unsupported, "{} has no GID: give it an address", port);
  if (!wanted) {
    return *std::min_element(gids.begin(), gids.end(),
                             [](const Gid& a, const Gid& b) { return rank(a) < rank(b); });
  }
  std::string known;
  for (const Gid& gid : gids) {
    if (gid.index == *wanted) return gid;
    known += fmt::format("{}{} ({} {})", known.empty() ? "" : ", ", gid.index,
                         gidKindName(gid.kind), gid.toString());
  }
  return error(Code::unsupported, "{} has no GID {}: HMC_RDMA_GID_INDEX may be {}", port, *wanted,
               known);
}

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
