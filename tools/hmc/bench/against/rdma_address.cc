#include "bench/against/perftest.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <vector>

#include <fmt/core.h>

namespace hmc::bench {

namespace {

namespace fs = std::filesystem;

std::string lineOf(const fs::path& file) {
  std::ifstream stream(file);
  std::string line;
  std::getline(stream, line);
  return line;
}

// The names in a folder, numbers by their value.
std::vector<std::string> namesIn(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(folder, none))
    names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end(), [](const std::string& a, const std::string& b) {
    return a.size() != b.size() ? a.size() < b.size() : a < b;
  });
  return names;
}

// "mlx5_0:1,mlx5_1" becomes its parts; a device without a port stands for all of its ports.
std::vector<std::string> wantedDevices() {
  const char* setting = std::getenv("HMC_RDMA_DEVICES");
  std::vector<std::string> parts;
  std::istringstream stream(setting == nullptr ? "" : setting);
  for (std::string part; std::getline(stream, part, ',');) parts.push_back(part);
  return parts;
}

bool isWanted(const std::string& device, const std::string& port,
              const std::vector<std::string>& wanted) {
  return wanted.empty() || std::any_of(wanted.begin(), wanted.end(), [&](const std::string& one) {
           return one == device || one == device + ":" + port;
         });
}

bool hasIpv4(const std::string& gid) {
  return gid.rfind("0000:0000:0000:0000:0000:ffff:", 0) == 0;
}

bool isLinkLocal(const std::string& gid) {
  return gid.rfind("fe80:", 0) == 0;
}

// Unused entries of the table are zero, or cannot be read.
std::optional<int> bestGid(const fs::path& port) {
  std::optional<int> routable;
  std::optional<int> any;
  for (const std::string& index : namesIn(port / "gids")) {
    const std::string gid = lineOf(port / "gids" / index);
    if (lineOf(port / "gid_attrs/types" / index) != "RoCE v2" || gid.empty()) continue;
    const int number = std::atoi(index.c_str());
    if (hasIpv4(gid)) return number;
    if (!isLinkLocal(gid) && !routable) routable = number;
    if (!any) any = number;
  }
  return routable ? routable : any;
}

std::optional<int> gidOf(const fs::path& port) {
  if (lineOf(port / "link_layer") != "Ethernet") return std::nullopt;
  const char* setting = std::getenv("HMC_RDMA_GID_INDEX");
  return setting != nullptr && *setting != '\0' ? std::atoi(setting) : bestGid(port);
}

}  // namespace

Result<RdmaAddress> findRdmaAddress(const std::string& root) {
  const fs::path folder = root + "/sys/class/infiniband";
  const auto devices = namesIn(folder);
  if (devices.empty()) {
    return Status(
        Code::notFound,
        fmt::format("this machine has no RDMA device: {} is empty or missing", folder.string()));
  }
  const auto wanted = wantedDevices();
  for (const std::string& device : devices) {
    for (const std::string& port : namesIn(folder / device / "ports")) {
      const fs::path place = folder / device / "ports" / port;
      const bool active = lineOf(place / "state").find("ACTIVE") != std::string::npos;
      if (active && isWanted(device, port, wanted))
        return RdmaAddress{device, std::atoi(port.c_str()), gidOf(place)};
    }
  }
  return Status(Code::notFound,
                wanted.empty()
                    ? "no port of any RDMA device is active: see rdma link"
                    : "no RDMA port that HMC_RDMA_DEVICES names is active: see rdma link");
}

}  // namespace hmc::bench
