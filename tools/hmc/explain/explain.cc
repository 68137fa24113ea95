#include "explain/explain.h"

#include <algorithm>
#include <cstdio>

#include <fmt/core.h>

#include "bench/report/units.h"
#include "peer_options.h"

namespace hmc::tool {

std::string toText(const std::vector<PathReport>& paths) {
  auto time = [](const std::optional<double>& ns) {
    return ns ? bench::timeText(*ns) : std::string("-");
  };
  std::string out = fmt::format("{:<10} {:<13} {:>10} {:>10}  {}\n", "transport", "", "typical",
                                "measured", "why");
  for (const auto& path : paths) {
    out += fmt::format("{:<10} {:<13} {:>10} {:>10}  {}\n", path.transport,
                       path.preferred ? "used"
                       : path.usable  ? "could be used"
                                      : "not usable",
                       time(path.predictedNs), time(path.measuredNs), path.reason);
  }
  return out;
}

int runExplain(const ExplainOptions& options) {
  const Timeout timeout(static_cast<int64_t>(options.seconds * 1e9));
  auto node = Node::create(optionsFromEnvironment("hmc explain"));
  const std::string address = withScheme(options.address);
  auto peer = node.ok() ? node->connectOnce(address, timeout) : Result<Peer>(node.status());
  if (!peer.ok()) {
    fmt::print(stderr, "hmc: {}\n`hmc doctor {}` finds out why\n", peer.status().message(),
               options.address);
    return 1;
  }
  const auto paths = peer->explain(options.local, options.size);
  fmt::print("{} at {}: a put of {} bytes of {} memory\n\n{}", peer->name(), address, options.size,
             options.local.toString(), toText(paths));
  bool measured = false;
  bool used = false;
  for (const auto& path : paths) {
    measured = measured || path.measuredNs;
    used = used || path.preferred;
  }
  fmt::print(
      "\ntypical: what such a transport takes on today's hosts, within a factor of a "
      "few\n{}\n",
      measured ? "measured: from the file that HMC_MEASUREMENTS names"
               : "measured: nothing; name a file of `hmc bench --save FILE` in HMC_MEASUREMENTS");
  return used ? 0 : 1;
}

}  // namespace hmc::tool
