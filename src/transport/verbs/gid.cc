#include "transport/verbs/gid.h"

#include <arpa/inet.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/error.h"

namespace hmc::verbs {

namespace {

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
  if (isIpv4()) {
    inet_ntop(AF_INET, bytes.data() + 12, text, sizeof(text));
  } else {
    inet_ntop(AF_INET6, bytes.data(), text, sizeof(text));
  }
  return text;
}

const char* gidKindName(Gid::Kind kind) {
  switch (kind) {
    case Gid::Kind::infiniband:
      return "InfiniBand";
    case Gid::Kind::roce1:
      return "RoCE v1";
    case Gid::Kind::roce2:
      return "RoCE v2";
  }
  return "unknown";
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

}  // namespace hmc::verbs
