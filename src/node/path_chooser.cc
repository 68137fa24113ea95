#include "node/path_chooser.h"

#include <limits>
#include <set>

#include "transport/check.h"

namespace hmc {

namespace {

constexpr OpKind kOperations[] = {OpKind::put, OpKind::get};

std::optional<double> measured(const Figures& figures, const PathOption& option, DeviceKind local,
                               OpKind operation, size_t size, bool away) {
  const auto& facts = option.engine->transport().facts();
  if (option.path != nullptr) {
    auto exact =
        figures.find(facts.name + "/" + option.path->name, local, opName(operation), size, away);
    // A bare name stands for the fastest path.
    if (exact || option.path != &facts.paths.front()) return exact;
  }
  return figures.find(facts.name, local, opName(operation), size, away);
}

}  // namespace

PathTimes PathChooser::times(const PathOption& option, OpKind operation, DeviceKind local) const {
  MemoryEnds ends{local, remote_, !option.engine->touches(local), option.stagedThere};
  PathTimes times;
  times.typical = [path = option.path, ends](uint64_t size) {
    return path ? predict(*path, ends, size) : std::numeric_limits<double>::infinity();
  };
  times.measured = [this, option, operation, local](uint64_t size) -> std::optional<double> {
    // Figures are of transfers to host memory that the transport reaches.
    if (remote_ != DeviceKind::cpu) return std::nullopt;
    return hmc::measured(figures_, option, local, operation, size, away_);
  };
  return times;
}

std::vector<PathTimes> PathChooser::allTimes(const std::vector<PathOption>& options,
                                             OpKind operation, DeviceKind local) const {
  std::vector<PathTimes> all;
  all.reserve(options.size());
  for (const auto& option : options) all.push_back(times(option, operation, local));
  return all;
}

std::vector<size_t> PathChooser::worthHaving(const std::vector<PathOption>& options) const {
  if (options.size() == 1) return {0};
  std::set<size_t> worth;
  for (OpKind operation : kOperations) {
    for (DeviceKind kind : kDeviceKinds) {
      for (size_t one : hmc::worthHaving(allTimes(options, operation, kind))) worth.insert(one);
    }
  }
  return {worth.begin(), worth.end()};
}

PathTables PathChooser::quickest(const std::vector<PathOption>& options) const {
  PathTables tables;
  for (OpKind operation : kOperations) {
    for (DeviceKind kind : kDeviceKinds) {
      if (options.size() == 1) break;
      tables.of(operation, kind) = hmc::quickest(allTimes(options, operation, kind));
    }
  }
  return tables;
}

}  // namespace hmc
