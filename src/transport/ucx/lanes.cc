#include "transport/ucx/lanes.h"

#include <net/if.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <sstream>

#include "base/error.h"

namespace hmc::ucx {

namespace {

namespace fs = std::filesystem;

constexpr const char* kDevices = "/sys/class/infiniband";

// "tcp/lo" from "#  lane[0]:  1:tcp/lo.0 md[1]  -> ... am wireup". The number after the last point
// is that of a path over the device.
std::string nameOfLane(const std::string& line) {
  const size_t mark = line.find("lane[");
  const size_t slash = mark == std::string::npos ? mark : line.find('/', mark);
  if (slash == std::string::npos) return "";
  const size_t begin = line.find_last_of(" :", slash) + 1;
  const std::string name = line.substr(begin, line.find(' ', slash) - begin);
  return name.substr(0, name.rfind('.'));
}

// The attributes of an endpoint as UCX has them after 1.13, of which the header may be.
struct EndpointAttributes {
  struct Lane {
    const char* transport;
    const char* device;
  };
  uint64_t fields;
  char name[UCP_ENTITY_NAME_MAX];
  sockaddr_storage local;
  sockaddr_storage remote;
  Lane* lanes;
  unsigned count;
  size_t laneSize;
};
static_assert(offsetof(EndpointAttributes, remote) == offsetof(ucp_ep_attr_t, remote_sockaddr));
constexpr uint64_t kLanesField = 1 << 3;
constexpr size_t kMostLanes = 64;

// None from UCX 1.13, which ignores a field that it does not know.
std::vector<std::string> queriedLanes(const Api& api, ucp_ep_h endpoint) {
  std::array<EndpointAttributes::Lane, kMostLanes> lanes{};
  EndpointAttributes attributes{};
  attributes.fields = kLanesField;
  attributes.lanes = lanes.data();
  attributes.count = kMostLanes;
  attributes.laneSize = sizeof(lanes[0]);
  std::vector<std::string> names;
  if (api.ucp_ep_query(endpoint, reinterpret_cast<ucp_ep_attr_t*>(&attributes)) != UCS_OK) {
    return names;
  }
  for (const auto& lane : lanes) {
    if (lane.transport && lane.device)
      names.push_back(fmt::format("{}/{}", lane.transport, lane.device));
  }
  return names;
}

// What UCX prints into a stream.
template <class Print>
std::string printedBy(const Print& print) {
  char* text = nullptr;
  size_t size = 0;
  FILE* stream = open_memstream(&text, &size);
  if (stream == nullptr) return "";
  print(stream);
  std::fclose(stream);
  std::string printed(text, size);
  std::free(text);
  return printed;
}

}  // namespace

std::string mainLane(const std::vector<std::string>& lanes) {
  const auto hardware = std::find_if(lanes.begin(), lanes.end(), isHardware);
  if (hardware != lanes.end()) return *hardware;
  return lanes.empty() ? "" : lanes.front();
}

std::string printedLane(const std::string& printed) {
  std::istringstream lines(printed);
  for (std::string line; std::getline(lines, line);) {
    std::string name = nameOfLane(line);
    const bool forMessages = (line + " ").find(" am ") != std::string::npos;
    if (!name.empty() && forMessages) return name;
  }
  return "";
}

std::string laneOf(const Api& api, ucp_ep_h endpoint) {
  std::string lane = mainLane(queriedLanes(api, endpoint));
  if (!lane.empty()) return lane;
  return printedLane(printedBy([&](FILE* stream) { api.ucp_ep_print_info(endpoint, stream); }));
}

bool isTcp(const std::string& lane) {
  return lane.rfind("tcp/", 0) == 0;
}

bool isHardware(const std::string& lane) {
  return lane.rfind("rc_", 0) == 0 || lane.rfind("dc_", 0) == 0;
}

// A line of one: "#  resource 5  :  md 4  dev 3  flags -- rc_verbs/rxe0:1".
bool hasHardware(const std::string& printed) {
  std::istringstream lines(printed);
  for (std::string line; std::getline(lines, line);) {
    const bool resource = line.find(" resource ") != std::string::npos;
    if (resource && isHardware(line.substr(line.find_last_of(' ') + 1))) return true;
  }
  return false;
}

bool hasHardware(const Api& api, ucp_context_h context) {
  return hasHardware(printedBy([&](FILE* stream) { api.ucp_context_print_info(context, stream); }));
}

bool hasRdmaDevice() {
  return !namesIn(kDevices).empty();
}

std::string slowerBecause(const std::string& lane, const std::string& version,
                          const std::string& modules, const std::string& devices) {
  if (!isTcp(lane)) return "";
  const auto rdma = namesIn(devices);
  if (!rdma.empty() && !fs::exists(fs::path(modules) / "libuct_ib.so.0")) {
    return fmt::format(
        "UCX {} uses {} although this machine has {}: its module libuct_ib.so.0 is not in {}; "
        "install a UCX with verbs, or use verbs",
        version, lane, rdma.front(), modules);
  }
  if (lane != "tcp/lo") return "";
  return fmt::format(
      "UCX {} uses {}, because its shared memory does not notice when a peer dies; use ipc on one "
      "host",
      version, lane);
}

std::string slowerBecause(const Api& api, const std::string& lane) {
  return slowerBecause(lane, api.version, fs::path(api.path).parent_path() / "ucx", kDevices);
}

std::vector<Transport::Path> pathsOfThisMachine() {
  std::vector<Transport::Path> paths;
  const auto devices = namesIn(kDevices);
  for (const char* transport : {"rc_mlx5", "dc_mlx5", "rc_verbs", "ud_mlx5", "ud_verbs"}) {
    for (const std::string& device : devices) {
      for (const std::string& port : namesIn(fmt::format("{}/{}/ports", kDevices, device))) {
        paths.push_back({fmt::format("{}/{}:{}", transport, device, port), 3000, 10});
      }
    }
  }
  if (auto* interfaces = if_nameindex()) {
    for (auto* at = interfaces; at->if_index != 0; ++at) {
      paths.push_back({fmt::format("tcp/{}", at->if_name), 15000, 2});
    }
    if_freenameindex(interfaces);
  }
  return paths;
}

}  // namespace hmc::ucx
