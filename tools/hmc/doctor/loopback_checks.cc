#include "doctor/loopback_checks.h"

#include <chrono>
#include <cstring>

#include <fmt/core.h>

#include "child.h"
#include "demo/demo.h"
#include "hmc/node.h"
#include "peer_options.h"

namespace hmc::tool {

namespace {

constexpr std::chrono::seconds kTimeout{20};
constexpr size_t kBytes = size_t{1} << 20;
constexpr const char* kDoor = "tcp://127.0.0.1:0";

// Puts a pattern into the other process and gets it back beside itself; answers the path.
Result<std::string> roundTrip(const std::string& transport) {
  auto child =
      Child::start({"demo-server", "--transport", transport, "--bytes", std::to_string(kBytes)});
  if (!child.ok()) return child.status();
  auto door = (*child)->readLine(kTimeout);
  if (!door.ok()) return door.status();
  if (door->rfind("error ", 0) == 0) return Status(Code::failed, door->substr(6));
  NodeOptions options;
  options.name = "hmc doctor";
  options.transports = {transport};
  auto node = Node::create(options);
  if (!node.ok()) return node.status();
  auto local = node->allocate("local", 2 * kBytes);
  if (!local.ok()) return local.status();
  auto peer = node->connect(*door, kTimeout);
  if (!peer.ok()) return peer.status();
  auto remote = peer->open(kDemoRegion, kTimeout);
  if (!remote.ok()) return remote.status();
  fillPattern(local->data(), kBytes, 1);
  Status moved = remote->put(*local, 0, 0, kBytes, kTimeout);
  if (moved.ok()) moved = remote->get(*local, kBytes, 0, kBytes, kTimeout);
  if (!moved.ok()) return moved;
  const char* bytes = static_cast<const char*>(local->data());
  if (std::memcmp(bytes, bytes + kBytes, kBytes) != 0)
    return Status(Code::failed, "what came back differs from what was put");
  return remote->path();
}

std::string fixFor(const Status& status, const char* otherwise) {
  return status.code() == Code::exhausted ? "ulimit -n 65536" : otherwise;
}

Finding checkDoor(Node& node) {
  auto door = node.listen(kDoor);
  if (door.ok()) return {Level::ok, "door", "a Node can listen on the loopback address", ""};
  return {Level::fail, "door", door.status().message(),
          fixFor(door.status(), "sudo ip link set lo up")};
}

Finding checkTransport(const PathReport& transport) {
  const std::string what = "put over " + transport.transport;
  if (!transport.usable) return {Level::ok, what, "not tried: " + transport.reason, ""};
  auto path = roundTrip(transport.transport);
  if (path.ok()) {
    return {Level::ok, what,
            fmt::format("{} bytes went to another process and back, {}", kBytes, *path), ""};
  }
  return {Level::fail, what, path.status().message(),
          fixFor(path.status(), "HMC_LOG=debug hmc demo  # shows where it breaks")};
}

}  // namespace

Finding judgeNode(const Status& made) {
  if (made.ok()) return {Level::ok, "node", "a Node can be made", ""};
  const char* fix =
      made.code() == Code::invalidArgument ? "unset HMC_TRANSPORTS" : "HMC_LOG=debug hmc info";
  return {Level::fail, "node", made.message(), fixFor(made, fix)};
}

std::vector<Finding> checkLoopback() {
  auto node = Node::create(optionsFromEnvironment("hmc doctor"));
  if (!node.ok()) return {judgeNode(node.status())};
  std::vector<Finding> findings{checkDoor(*node)};
  for (const auto& transport : node->transports()) findings.push_back(checkTransport(transport));
  return findings;
}

}  // namespace hmc::tool
