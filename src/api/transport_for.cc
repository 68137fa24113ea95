#include "api/transport_for.h"

#include <array>

#include "base/error.h"

namespace hmc {

const char* connTypeName(ConnType type) {
  constexpr std::array kNames = {"RDMA", "UCX", "TCP", "IPC", "AUTO"};
  const auto index = static_cast<size_t>(type);
  return index < kNames.size() ? kNames[index] : "unknown";
}

namespace {

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
