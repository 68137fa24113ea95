#include <cstring>

#include <fmt/core.h>

#include "demo/demo.h"
#include "doctor/checks.h"
#include "peer_options.h"
#include "try.h"

namespace hmc::tool {

namespace {

constexpr size_t kBytes = size_t{1} << 20;

// Puts a pattern into the other process and gets it back beside itself; answers the path.
Result<std::string> roundTrip(const std::string& transport) {
  TOOL_ASSIGN(const DemoPair pair, startDemoPair(transport, kBytes, 2 * kBytes));
  fillPattern(pair.local.data(), kBytes, 1);
  TOOL_TRY(pair.remote.put(pair.local, 0, 0, kBytes));
  TOOL_TRY(pair.remote.get(pair.local, kBytes, 0, kBytes));
  const char* bytes = static_cast<const char*>(pair.local.data());
  if (std::memcmp(bytes, bytes + kBytes, kBytes) != 0)
    return Status(Code::failed, "what came back differs from what was put");
  return pair.remote.path();
}

std::string fixFor(const Status& status, const char* otherwise) {
  return status.code() == Code::exhausted ? "ulimit -n 65536" : otherwise;
}

Finding checkListener(Node& node) {
  auto listener = node.listen("tcp://127.0.0.1:0");
  if (listener.ok())
    return {Level::ok, "listener", "a Node can listen on the loopback address", ""};
  return {Level::fail, "listener", listener.status().message(),
          fixFor(listener.status(), "sudo ip link set lo up")};
}

// Does a Node take this transport without being told to?
bool isDefault(const std::string& transport, const NodeOptions& options) {
  constexpr const char* kOnlyByName = "ucx";
  return !options.transports.empty() || transport != kOnlyByName;
}

}  // namespace

Finding judgePut(const std::string& transport, const Result<std::string>& path, bool isDefault) {
  const std::string what = "put over " + transport;
  if (path.ok()) {
    return {Level::ok, what,
            fmt::format("{} bytes went to another process and back, {}", kBytes, *path), ""};
  }
  const std::string why = path.status().message();
  return {isDefault ? Level::fail : Level::warn, what,
          isDefault ? why : why + "; it serves only where a program names it",
          fixFor(path.status(), "HMC_LOG=debug hmc demo  # shows where it breaks")};
}

Finding judgeNode(const Status& made) {
  if (made.ok()) return {Level::ok, "node", "a Node can be made", ""};
  const char* fix =
      made.code() == Code::invalidArgument ? "unset HMC_TRANSPORTS" : "HMC_LOG=debug hmc info";
  return {Level::fail, "node", made.message(), fixFor(made, fix)};
}

std::vector<Finding> checkLoopback() {
  const NodeOptions options = optionsFromEnvironment("hmc doctor");
  auto node = Node::create(options);
  if (!node.ok()) return {judgeNode(node.status())};
  std::vector<Finding> findings{checkListener(*node)};
  for (const PathReport& one : node->transports()) {
    findings.push_back(
        one.usable
            ? judgePut(one.transport, roundTrip(one.transport), isDefault(one.transport, options))
            : Finding{Level::ok, "put over " + one.transport, "not tried: " + one.reason, ""});
  }
  return findings;
}

}  // namespace hmc::tool
