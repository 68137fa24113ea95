#include "explain/explain.h"

#include <algorithm>
#include <cstdio>

#include <fmt/core.h>

#include "bench/report/units.h"
#include "peer_options.h"

namespace hmc::tool {

namespace {

std::string timeOf(const std::optional<double>& ns) {
  return ns ? bench::timeText(*ns) : "-";
}

// A time that was not measured does not look like one that was.
std::string measuredOf(const PathReport& path) {
  return path.extrapolatedNs ? "~ " + timeOf(path.extrapolatedNs) : timeOf(path.measuredNs);
}

// Where the times come from.
std::string legendOf(const std::vector<PathReport>& paths) {
  const auto any = [&](const auto& has) { return std::any_of(paths.begin(), paths.end(), has); };
  std::string text =
      "typical: what such a transport takes on today's hosts, within a factor of a few\n";
  const bool beyond = any([](const PathReport& one) { return one.extrapolatedNs.has_value(); });
  const bool measured = any([](const PathReport& one) { return one.measuredNs.has_value(); });
  if (measured) text += "measured: from the file that HMC_MEASUREMENTS names\n";
  if (beyond) {
    text +=
        "~: extrapolated, because the file that HMC_MEASUREMENTS names has only sizes below this "
        "one, or only above\n";
  }
  if (!measured && !beyond) {
    text += "measured: nothing; name a file of `hmc bench --save FILE` in HMC_MEASUREMENTS\n";
  }
  return text;
}

}  // namespace

std::string toText(const std::vector<PathReport>& paths) {
  std::string out = fmt::format("{:<10} {:<13} {:>10} {:>10}  {}\n", "transport", "", "typical",
                                "measured", "why");
  for (const auto& path : paths) {
    out += fmt::format("{:<10} {:<13} {:>10} {:>10}  {}\n", path.transport,
                       path.preferred ? "used"
                       : path.usable  ? "could be used"
                                      : "not usable",
                       timeOf(path.predictedNs), measuredOf(path), path.reason);
  }
  return out + "\n" + legendOf(paths);
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
  const bool used = std::any_of(paths.begin(), paths.end(),
                                [](const PathReport& path) { return path.preferred; });
  return used ? 0 : 1;
}

}  // namespace hmc::tool
