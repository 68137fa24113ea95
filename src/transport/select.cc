#include "transport/select.h"

#include <algorithm>

#include <fmt/core.h>

namespace hmc {

namespace {

TransportChoice choose(const Transport& ours, const std::vector<TransportOffer>& theirs) {
  const auto& facts = ours.facts();
  auto offer = std::find_if(theirs.begin(), theirs.end(),
                            [&](const TransportOffer& one) { return one.name == facts.name; });
  if (offer == theirs.end()) return {facts.name, false, "the peer does not have it"};
  if (offer->domain != facts.domain) {
    return {facts.name, false,
            fmt::format("the peer is out of its reach: we are in {}, it is in {}", facts.domain,
                        offer->domain)};
  }
  return {facts.name, true, fmt::format("both sides are in {}", facts.domain)};
}

// What memory that is not the host's typically adds: the runtime's call for a copy, and where the
// transport cannot touch it, a second copy through the host. At the target that copy has to be
// asked for.
constexpr double kDeviceCopyNs = 10000;
constexpr double kStagingBytesPerNs = 10;
constexpr double kAskingNs = 60000;

// Sizes between which a choice does not change: powers of two up to where only bandwidth counts.
constexpr int kLargestPower = 32;
// An open path costs nothing more, but noise is no reason to change it.
constexpr double kAboutEqual = 1.05;

// From the smallest size up: changes to the fastest path when that is `margin` times as fast.
PathTable walk(const std::vector<PathTime>& paths, double margin) {
  std::vector<PathTable::Range> ranges;
  size_t now = 0;
  for (int power = 0; power <= kLargestPower; ++power) {
    const uint64_t size = uint64_t{1} << power;
    std::vector<double> ns;
    ns.reserve(paths.size());
    for (const PathTime& path : paths) ns.push_back(path(size));
    const auto best = static_cast<size_t>(std::min_element(ns.begin(), ns.end()) - ns.begin());
    if (ns[now] >= margin * ns[best]) now = best;
    if (!ranges.empty() && ranges.back().path == now) {
      ranges.back().largest = size;
    } else {
      ranges.push_back({size, now});
    }
  }
  ranges.back().largest = UINT64_MAX;
  return PathTable(std::move(ranges));
}

}  // namespace

std::vector<TransportChoice> chooseTransports(const std::vector<const Transport*>& ours,
                                              const std::vector<TransportOffer>& theirs) {
  std::vector<TransportChoice> choices;
  choices.reserve(ours.size());
  for (const Transport* transport : ours) choices.push_back(choose(*transport, theirs));
  return choices;
}

double predict(const Transport::Path& path, const MemoryEnds& ends, uint64_t size) {
  const auto bytes = static_cast<double>(size);
  double ns = path.latencyNs + bytes / path.bytesPerNs;
  if (ends.local != DeviceKind::cpu) ns += kDeviceCopyNs;
  if (ends.stagedHere) ns += bytes / kStagingBytesPerNs;
  if (ends.stagedThere) ns += kAskingNs + kDeviceCopyNs + bytes / kStagingBytesPerNs;
  return ns;
}

std::vector<size_t> worthHaving(const std::vector<PathTime>& paths) {
  std::vector<size_t> worth;
  if (paths.empty()) return worth;
  const PathTable table = walk(paths, kWorthAnotherPath);
  for (const auto& range : table.ranges()) {
    if (std::find(worth.begin(), worth.end(), range.path) == worth.end())
      worth.push_back(range.path);
  }
  std::sort(worth.begin(), worth.end());
  return worth;
}

PathTable quickest(const std::vector<PathTime>& paths) {
  return paths.size() < 2 ? PathTable() : walk(paths, kAboutEqual);
}

}  // namespace hmc
