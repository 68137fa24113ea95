#include "api/documented_types.h"

#include <array>

#include "base/error.h"

namespace hmc {

namespace {

status_t valueOf(Code code) {
  switch (code) {
    case Code::ok:
      return status_t::SUCCESS;
    case Code::unsupported:
      return status_t::UNSUPPORT;
    case Code::notFound:
      return status_t::NOT_FOUND;
    case Code::deadlineExceeded:
      return status_t::TIMEOUT;
    default:
      return status_t::ERROR;
  }
}

// The documented names stand for a transport that a host may lack.
Result<TransportsFor> documented(ConnType type, const char* name, const NodeImpl& node,
                                 const Settings& settings) {
  for (const auto& engine : node.engines()) {
    if (engine->transport().facts().name == name) return TransportsFor{{name}, ""};
  }
  std::string why = "it is not among the transports of this process";
  for (const auto& missing : node.missing()) {
    if (missing.name == name) why = missing.why.message();
  }
  if (settings.strict) {
    return error(Code::unsupported,
                 "{} is not available ({}), and HMC_STRICT_TRANSPORT=1 allows no substitute",
                 connTypeName(type), why);
  }
  return TransportsFor{{}, fmt::format("{} is not available ({})", connTypeName(type), why)};
}

}  // namespace

status_t report(const Status& status) {
  return report(status, valueOf(status.code()));
}

status_t report(const Status& status, status_t as) {
  if (status.ok()) return status_t::SUCCESS;
  setLastStatus(status);
  return as;
}

// Both enumerations are made from HMC_DEVICE_KINDS; MemoryType has DEFAULT in front.
MemoryType memoryTypeOf(DeviceKind kind) {
  return static_cast<MemoryType>(static_cast<int>(kind) + 1);
}

MemoryType resolved(MemoryType type) {
  if (type != MemoryType::DEFAULT) return type;
  auto found = accelerators();
  return found.empty() ? MemoryType::CPU : memoryTypeOf(found.front()->facts().kind);
}

Result<Device> deviceFor(int deviceId, MemoryType type) {
  const int row = static_cast<int>(resolved(type)) - 1;
  if (row < 0 || row >= kDeviceKindCount) {
    return error(Code::invalidArgument, "there is no MemoryType {}", static_cast<int>(type));
  }
  const DeviceKind kind = kDeviceKinds[row];
  return Device{kind, kind == DeviceKind::cpu ? 0 : deviceId};
}

Region regionOf(const ConnBuffer& buffer) {
  auto device = deviceFor(buffer.device_id, buffer.mem_type);
  return {buffer.ptr, buffer.buffer_size, device.ok() ? *device : Device{}};
}

const char* connTypeName(ConnType type) {
  constexpr std::array kNames = {"RDMA", "UCX", "TCP", "IPC", "AUTO"};
  const auto index = static_cast<size_t>(type);
  return index < kNames.size() ? kNames[index] : "unknown";
}

Result<TransportsFor> transportsFor(ConnType type, const NodeImpl& node, const Settings& settings) {
  switch (type) {
    case ConnType::RDMA:
      return documented(type, "verbs", node, settings);
    case ConnType::UCX:
      return documented(type, "ucx", node, settings);
    case ConnType::TCP:
      return TransportsFor{{"tcp"}, ""};
    case ConnType::IPC:
      return TransportsFor{{"ipc"}, ""};
    case ConnType::AUTO:
      return TransportsFor{};
  }
  return error(Code::invalidArgument, "{} is not a ConnType", static_cast<int>(type));
}

}  // namespace hmc
