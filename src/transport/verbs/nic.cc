#include "transport/verbs/nic.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/environment.h"
#include "base/error.h"

namespace hmc::verbs {

namespace {

constexpr uint32_t kSoftRoceVendor = 0xffffff;

int mtuBytes(ibv_mtu mtu) {
  return 128 << mtu;
}

Result<std::optional<int>> numberOf(const Variable& variable) {
  auto text = valueOf(variable);
  if (!text || text->empty()) return std::optional<int>();
  int number = -1;
  auto [stop, problem] = std::from_chars(text->data(), text->data() + text->size(), number);
  if (problem != std::errc() || *stop != '\0' || number < 0) {
    return error(Code::invalidArgument, "{}=\"{}\": expected a number", variable.name, *text);
  }
  return std::optional<int>(number);
}

double rateOf(const std::string& device, int port) {
  std::ifstream file(fmt::format("/sys/class/infiniband/{}/ports/{}/rate", device, port));
  double gbits = 0;
  file >> gbits;
  return gbits;
}

std::optional<ibv_mtu> mtuOf(int bytes) {
  for (ibv_mtu mtu : {IBV_MTU_256, IBV_MTU_512, IBV_MTU_1024, IBV_MTU_2048, IBV_MTU_4096}) {
    if (mtuBytes(mtu) == bytes) return mtu;
  }
  return std::nullopt;
}

// Where there is no /sys, as in some containers, libibverbs knows the GIDs but not their kinds. All
// drivers offer an IPv4 address as RoCE v1 and v2: the user may have to choose the index with
// HMC_RDMA_GID_INDEX.
std::vector<Gid> askForGids(const Library& library, ibv_context* context, int port, int count,
                            bool ethernet) {
  std::vector<Gid> gids;
  for (int index = 0; index < count; ++index) {
    ibv_gid bytes{};
    if (library.ibv_query_gid(context, static_cast<uint8_t>(port), index, &bytes) != 0) break;
    Gid gid{index, ethernet ? Gid::Kind::roce2 : Gid::Kind::infiniband, {}};
    std::copy(std::begin(bytes.raw), std::end(bytes.raw), gid.bytes.begin());
    if (gid.bytes != GidBytes{}) gids.push_back(gid);
  }
  return gids;
}

Port broken(Port port, std::string problem, std::string fix) {
  port.problem = std::move(problem);
  port.fix = std::move(fix);
  return port;
}

Port examine(const Library& library, ibv_context* context, Port port,
             const PortSettings& settings) {
  ibv_port_attr attributes{};
  // The old symbol fills the part of the struct that it knows.
  int failed = library.ibv_query_port(context, static_cast<uint8_t>(port.number),
                                      reinterpret_cast<struct _compat_ibv_port_attr*>(&attributes));
  if (failed != 0) return broken(port, "cannot be queried: " + errnoText(failed), "");
  port.ethernet = attributes.link_layer == IBV_LINK_LAYER_ETHERNET;
  port.lid = attributes.lid;
  port.mtu = attributes.active_mtu;
  port.largest = attributes.max_msg_sz;
  port.gbits = rateOf(port.device, port.number);
  auto gids = readGids("/sys", port.device, port.number);
  if (gids.empty())
    gids = askForGids(library, context, port.number, attributes.gid_tbl_len, port.ethernet);
  auto gid = chooseGid(gids, settings.gidIndex, port.name());
  if (gid.ok()) port.gid = *gid;
  if (attributes.state != IBV_PORT_ACTIVE) {
    return broken(port, "the port is not active",
                  port.ethernet ? "bring its network interface up: ip link set DEV up"
                                : "check the cable and the subnet manager: ibstat");
  }
  if (!gid.ok()) return broken(port, gid.status().message(), "ip addr add ADDRESS/24 dev DEV");
  if (settings.mtu) {
    auto mtu = mtuOf(*settings.mtu);
    if (!mtu || *mtu > port.mtu) {
      return broken(port,
                    fmt::format("HMC_RDMA_MTU={} is not 256, 512, 1024, 2048 or 4096, or is "
                                "above the port's {}",
                                *settings.mtu, mtuBytes(port.mtu)),
                    "set it to one of these, or unset it");
    }
    port.mtu = *mtu;
  }
  port.usable = true;
  if (port.ethernet && port.gid.isLinkLocal()) {
    return broken(port,
                  "has link-local GIDs only, which reach no further than this network segment",
                  "ip addr add ADDRESS/24 dev DEV");
  }
  return port;
}

void addPortsOf(const Library& library, ibv_device* device, const PortSettings& settings,
                std::vector<Port>& ports) {
  Port port;
  port.device = library.ibv_get_device_name(device);
  auto context = openDevice(library, device);
  if (!context.ok()) {
    ports.push_back(
        broken(port, context.status().message(),
               "give this user read and write access to /dev/infiniband/uverbs*, or run as root"));
    return;
  }
  ibv_device_attr attributes{};
  if (int failed = library.ibv_query_device(context->get(), &attributes); failed != 0) {
    ports.push_back(broken(port, "cannot be queried: " + errnoText(failed), ""));
    return;
  }
  port.soft = attributes.vendor_id == kSoftRoceVendor;
  for (int number = 1; number <= attributes.phys_port_cnt; ++number) {
    port.number = number;
    ports.push_back(examine(library, context->get(), port, settings));
  }
}

bool better(const Port& a, const Port& b) {
  if (a.usable != b.usable) return a.usable;
  if (a.soft != b.soft) return b.soft;
  return a.gbits > b.gbits;
}

// The ports that the user named, in that order.
Result<std::vector<Port>> named(const std::vector<std::string>& names,
                                const std::vector<Port>& ports) {
  std::vector<Port> chosen;
  for (const std::string& name : names) {
    auto port = std::find_if(ports.begin(), ports.end(), [&](const Port& one) {
      return name == one.name() || name == one.device;
    });
    if (port == ports.end()) {
      std::string known;
      for (const Port& one : ports) known += (known.empty() ? "" : ", ") + one.name();
      return error(Code::unsupported,
                   "HMC_RDMA_DEVICES names {}, which does not exist; there are: {}", name,
                   known.empty() ? "none" : known);
    }
    chosen.push_back(*port);
  }
  return chosen;
}

}  // namespace

Result<PortSettings> PortSettings::fromEnvironment() {
  PortSettings settings;
  std::istringstream names(valueOf(variable::kRdmaDevices).value_or(""));
  for (std::string name; std::getline(names, name, ',');) settings.ports.push_back(name);
  std::erase(settings.ports, "");
  HMC_ASSIGN(settings.gidIndex, numberOf(variable::kRdmaGidIndex));
  HMC_ASSIGN(settings.mtu, numberOf(variable::kRdmaMtu));
  return settings;
}

std::string Port::kind() const {
  return soft ? "soft-RoCE" : gidKindName(gid.kind);
}

std::string Port::describe() const {
  return fmt::format("{}, GID {} ({}), MTU {}, {:g} Gb/s", kind(), gid.index, gid.toString(),
                     mtuBytes(mtu), gbits);
}

DeviceList listDevices(const Library& library) {
  int count = 0;
  return {library.ibv_get_device_list(&count), library.ibv_free_device_list};
}

Result<Handle<ibv_context>> openDevice(const Library& library, ibv_device* device) {
  Handle<ibv_context> context(library.ibv_open_device(device), library.ibv_close_device);
  if (!context) {
    return errnoStatus(
        fmt::format("cannot open RDMA device {}", library.ibv_get_device_name(device)));
  }
  return context;
}

Result<std::vector<Port>> findPorts(const Library& library, const PortSettings& settings) {
  std::vector<Port> ports;
  DeviceList devices = listDevices(library);
  for (ibv_device** device = devices.get(); device && *device; ++device) {
    addPortsOf(library, *device, settings, ports);
  }
  if (!settings.ports.empty()) return named(settings.ports, ports);
  std::stable_sort(ports.begin(), ports.end(), better);
  return ports;
}

Status explainNoDevice(const std::string& sysfs, const std::string& dev) {
  std::error_code failed;
  std::filesystem::directory_iterator devices(sysfs + "/class/infiniband", failed);
  if (failed || devices == std::filesystem::directory_iterator()) {
    return error(Code::unsupported, "this host has no RDMA device");
  }
  const std::string name = devices->path().filename().string();
  if (!std::filesystem::exists(dev + "/infiniband", failed)) {
    return error(Code::unsupported,
                 "this host has RDMA device {}, but no {}/infiniband: load ib_uverbs, and in a "
                 "container pass the devices in (--device=/dev/infiniband)",
                 name, dev);
  }
  return error(Code::unsupported,
               "this host has RDMA device {}, but libibverbs has no driver for it: install "
               "ibverbs-providers",
               name);
}

Result<std::unique_ptr<Nic>> Nic::open(std::shared_ptr<const Library> library, const Port& port) {
  DeviceList devices = listDevices(*library);
  for (ibv_device** device = devices.get(); device && *device; ++device) {
    if (port.device != library->ibv_get_device_name(*device)) continue;
    HMC_ASSIGN(auto context, openDevice(*library, *device));
    std::unique_ptr<Nic> nic(new Nic(std::move(library), port));
    HMC_TRY(nic->prepare(std::move(context)));
    return nic;
  }
  return error(Code::unsupported, "RDMA device {} is gone", port.device);
}

Status Nic::prepare(Handle<ibv_context> context) {
  context_ = std::move(context);
  if (int failed = library_->ibv_query_device(context_.get(), &limits_); failed != 0) {
    return errnoStatus(fmt::format("querying RDMA device {}", port_.device), failed);
  }
  pd_ = {library_->ibv_alloc_pd(context_.get()), library_->ibv_dealloc_pd};
  if (!pd_) return errnoStatus(fmt::format("allocating a protection domain of {}", port_.device));
  scratchKey_ = {library_->ibv_reg_mr(pd_.get(), scratch_.get(), 1, IBV_ACCESS_LOCAL_WRITE),
                 library_->ibv_dereg_mr};
  if (!scratchKey_) return errnoStatus(fmt::format("registering a byte with {}", port_.device));
  // The service thread reads it until it is empty.
  fcntl(context_->async_fd, F_SETFL, fcntl(context_->async_fd, F_GETFL) | O_NONBLOCK);
  return Status();
}

std::string pathName(const Nics& nics) {
  std::string devices;
  for (const auto& nic : nics) devices += (devices.empty() ? "" : "+") + nic->port().device;
  return fmt::format("{}, {}", devices, nics[0]->port().kind());
}

size_t largestPiece(const Nics& nics) {
  size_t largest = size_t{1} << 20;
  for (const auto& nic : nics) largest = std::min<size_t>(largest, nic->port().largest);
  return largest;
}

std::string Nic::trouble() const {
  ibv_port_attr attributes{};
  const int failed =
      library_->ibv_query_port(context_.get(), static_cast<uint8_t>(port_.number),
                               reinterpret_cast<struct _compat_ibv_port_attr*>(&attributes));
  if (failed != 0) return fmt::format("; device {} does not answer", port_.device);
  if (attributes.state != IBV_PORT_ACTIVE) return fmt::format("; port {} is down", port_.name());
  return "";
}

}  // namespace hmc::verbs
