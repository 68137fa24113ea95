#include <cerrno>
#include <charconv>
#include <cstring>

#include <fmt/core.h>

#include "bench/report/units.h"
#include "doctor/checks.h"
#include "hmc/version.h"
#include "peer_options.h"

namespace hmc::tool {

namespace {

using namespace std::chrono_literals;

// Clocks that are further apart make logs of two hosts hard to read side by side.
constexpr std::chrono::nanoseconds kClockTolerance = 500ms;
constexpr size_t kLargePut = size_t{1} << 20;

bool isPort(const std::string& text) {
  int port = 0;
  const char* end = text.data() + text.size();
  auto [stop, problem] = std::from_chars(text.data(), end, port);
  return problem == std::errc() && stop == end && port > 0 && port < 65536;
}

std::string whoListens(const PeerAddress& target) {
  if (target.host.empty()) return "ss -lxp | grep " + target.path;
  return fmt::format("ss -ltnp 'sport = :{}'  # on {}: which program listens there", target.port,
                     target.host);
}

}  // namespace

Result<PeerAddress> parsePeerAddress(const std::string& text) {
  PeerAddress target;
  target.address = withScheme(text);
  const std::string rest = target.address.substr(target.address.find("://") + 3);
  if (target.address.rfind("unix://", 0) == 0) {
    target.path = rest;
    return target;
  }
  const size_t colon = rest.rfind(':');
  if (target.address.rfind("tcp://", 0) != 0 || colon == std::string::npos || colon == 0 ||
      !isPort(rest.substr(colon + 1))) {
    return Status(Code::invalidArgument,
                  fmt::format("\"{}\" is no address of a peer: write host:port, tcp://host:port or "
                              "unix:///path",
                              text));
  }
  target.host = rest.substr(0, colon);
  target.port = rest.substr(colon + 1);
  if (target.host.front() == '[' && target.host.back() == ']')
    target.host = target.host.substr(1, target.host.size() - 2);
  return target;
}

Finding judgeReach(const PeerAddress& target, int problem, std::chrono::milliseconds timeout) {
  const char* what = "reachability";
  switch (problem) {
    case 0:
      return {Level::ok, what, target.address + " accepts connections", ""};
    case ECONNREFUSED:
    case ENOENT:
      return {Level::fail, what,
              target.address + ": refused; the host is there, but nothing listens on that listener",
              target.host.empty()
                  ? "ls -l " + target.path + "  # start the peer, or name the path it listens on"
                  : fmt::format("ss -ltn 'sport = :{}'  # on {}: start the peer, let it listen on "
                                "0.0.0.0, or name its port",
                                target.port, target.host)};
    case ETIMEDOUT:
      return {
          Level::fail, what,
          fmt::format("{}: no answer within {} ms; a firewall drops it, or no such host runs",
                      target.address, timeout.count()),
          fmt::format("sudo ufw allow {}/tcp  # on {}, or the same in its firewall; ping it first",
                      target.port, target.host)};
    case EHOSTUNREACH:
    case ENETUNREACH:
      return {Level::fail, what,
              fmt::format("{}: no route ({})", target.address, std::strerror(problem)),
              "ip route get " + target.host + "  # connect to its network, or add a route"};
    case EACCES:
    case EPERM:
      return {Level::fail, what,
              fmt::format("{}: forbidden ({})", target.address, std::strerror(problem)),
              target.host.empty() ? "ls -l " + target.path + "  # run as the user who owns it"
                                  : "sudo iptables -S OUTPUT  # a rule here forbids it"};
    default:
      return {Level::fail, what, target.address + ": " + std::strerror(problem),
              "ip route get " + target.host};
  }
}

Finding judgeHello(const PeerAddress& target, const Status& hello, bool haveSecret) {
  const char* what = "hello";
  switch (hello.code()) {
    case Code::ok:
      return {Level::ok, what, "the peer speaks our protocol and let us in", ""};
    case Code::permissionDenied:
      return {Level::fail, what, "the secrets differ: " + hello.message(),
              haveSecret ? "export HMC_SECRET=...  # the peer's; or unset it on both sides"
                         : "export HMC_SECRET=...  # the one that the peer was started with"};
    case Code::unsupported:
      return {Level::fail, what, "the versions do not fit: " + hello.message(),
              "hmc --version  # on both hosts; install the newer one on the other, too"};
    case Code::invalidArgument:
      return {Level::fail, what, hello.message(), "hmc doctor --help"};
    case Code::deadlineExceeded:
      return {
          Level::fail, what,
          "connected, but no hello came back; it is no HMC, or it is stopped: " + hello.message(),
          whoListens(target)};
    default:
      return {Level::fail, what, "what listens there does not speak HMC: " + hello.message(),
              whoListens(target)};
  }
}

Finding judgeTrust(bool proven) {
  const char* what = "security";
  if (proven) return {Level::ok, what, "both sides proved that they belong together", ""};
  return {Level::warn, what, "the peer lets everybody in: it listens on a network without a secret",
          "export HMC_SECRET=$(openssl rand -hex 32)  # the same on both sides, and restart them"};
}

Finding judgeVersion(const std::string& ours, const Result<PeerFacts>& theirs) {
  const char* what = "versions";
  const char* fix = "hmc --version  # on both hosts; install the newer one on the other, too";
  if (!theirs.ok()) return {Level::warn, what, theirs.status().message(), fix};
  const std::string detail = fmt::format("{} here, {} there", ours, theirs->version);
  if (theirs->version == ours) return {Level::ok, what, detail, ""};
  return {Level::warn, what, detail + "; they work together, upgrade when you can", fix};
}

Finding judgeClock(std::chrono::nanoseconds offset, std::chrono::nanoseconds roundTrip) {
  const auto count = static_cast<double>(offset.count());
  const std::string detail =
      fmt::format("the peer's is {} {} ours, to within {}",
                  bench::timeText(count < 0 ? -count : count), count < 0 ? "behind" : "ahead of",
                  bench::timeText(static_cast<double>(roundTrip.count()) / 2));
  if (std::chrono::abs(offset) - roundTrip / 2 <= kClockTolerance)
    return {Level::ok, "clocks", detail, ""};
  return {Level::warn, "clocks", detail + "; time stamps of the two cannot be compared",
          "sudo timedatectl set-ntp true  # on both hosts"};
}

Finding judgePaths(const std::vector<PathReport>& paths) {
  std::string others;
  const PathReport* used = nullptr;
  for (const auto& path : paths) {
    if (path.preferred) used = &path;
    if (!path.usable) others += fmt::format("; not {}: {}", path.transport, path.reason);
  }
  if (used) return {Level::ok, "transport", used->transport + ": " + used->reason + others, ""};
  return {Level::fail, "transport", "no transport reaches the peer" + others,
          "unset HMC_TRANSPORTS  # on both sides"};
}

std::vector<Finding> checkPeer(const std::string& address, const NodeOptions& options,
                               std::chrono::milliseconds timeout) {
  auto target = parsePeerAddress(address);
  if (!target.ok()) {
    return {{Level::fail, "address", target.status().message(), "hmc doctor 127.0.0.1:5001"}};
  }
  Reach reach = tryReach(*target, timeout);
  std::vector<Finding> findings{reach.name};
  if (reach.name.level == Level::fail) return findings;
  findings.push_back(judgeReach(*target, reach.problem, timeout));
  if (reach.problem != 0) return findings;
  auto node = Node::create(options);
  if (!node.ok()) {
    findings.push_back(judgeNode(node.status()));
    return findings;
  }
  auto peer = node->connectOnce(target->address, timeout);
  findings.push_back(judgeHello(*target, peer.status(), !options.secret.empty()));
  if (!peer.ok()) return findings;
  findings.push_back(judgeTrust(peer->proven()));
  auto facts = peer->probe(timeout);
  findings.push_back(judgeVersion(kVersion, facts));
  if (facts.ok()) {
    findings.push_back(judgeClock(facts->clockOffset, facts->roundTrip));
    findings.push_back({Level::ok, "round trip",
                        bench::timeText(static_cast<double>(facts->roundTrip.count())) +
                            " for a request on the control channel",
                        ""});
  }
  findings.push_back(judgePaths(peer->explain(Device{}, kLargePut)));
  return findings;
}

}  // namespace hmc::tool
