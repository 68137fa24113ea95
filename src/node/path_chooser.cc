#include "node/path_chooser.h"

#include <algorithm>
#include <limits>
#include <set>

#include "transport/check.h"

namespace hmc {

namespace {

constexpr OpKind kOperations[] = {OpKind::put, OpKind::get};

}  // namespace

double PathChooser::typical(const PathOption& option, DeviceKind local, uint64_t size) const {
  if (option.path == nullptr) return std::numeric_limits<double>::infinity();
  const MemoryEnds ends{local, remote_, !option.engine->touches(local), option.stagedThere};
  return predict(*option.path, ends, size);
}

std::string PathChooser::measuredAs(const PathOption& option, OpKind operation,
                                    DeviceKind local) const {
  // Only transfers to host memory that the transport reaches were measured.
  if (remote_ != DeviceKind::cpu) return "";
  const auto& facts = option.engine->transport().facts();
  auto known = [&](const std::string& name) {
    return measurements_.find(name, local, opName(operation), 1, away_).has_value();
  };
  if (option.path != nullptr) {
    std::string exact = facts.name + "/" + option.path->name;
    if (known(exact)) return exact;
    // A bare name stands for the fastest path of the transport.
    if (option.path != &facts.paths.front()) return "";
  }
  return known(facts.name) ? facts.name : "";
}

std::optional<double> PathChooser::measured(const PathOption& option, OpKind operation,
                                            DeviceKind local, uint64_t size) const {
  const std::string name = measuredAs(option, operation, local);
  if (name.empty()) return std::nullopt;
  return measurements_.find(name, local, opName(operation), size, away_);
}

bool PathChooser::covers(const PathOption& option, OpKind operation, DeviceKind local,
                         uint64_t size) const {
  const std::string name = measuredAs(option, operation, local);
  return !name.empty() && measurements_.covers(name, local, opName(operation), size, away_);
}

std::vector<PathTime> PathChooser::times(const std::vector<PathOption>& options, OpKind operation,
                                         DeviceKind local) const {
  const bool allMeasured = std::all_of(options.begin(), options.end(), [&](const auto& option) {
    return measured(option, operation, local, 1).has_value();
  });
  std::vector<PathTime> all;
  all.reserve(options.size());
  for (const auto& option : options) {
    all.emplace_back([this, option, operation, local, allMeasured](uint64_t size) {
      return allMeasured ? *measured(option, operation, local, size) : typical(option, local, size);
    });
  }
  return all;
}

std::vector<size_t> PathChooser::worthHaving(const std::vector<PathOption>& options) const {
  if (options.size() == 1) return {0};
  std::set<size_t> worth;
  for (OpKind operation : kOperations) {
    for (DeviceKind kind : kDeviceKinds) {
      for (size_t one : hmc::worthHaving(times(options, operation, kind))) worth.insert(one);
    }
  }
  return {worth.begin(), worth.end()};
}

PathTables PathChooser::quickest(const std::vector<PathOption>& options) const {
  PathTables tables;
  for (OpKind operation : kOperations) {
    for (DeviceKind kind : kDeviceKinds) {
      if (options.size() == 1) break;
      tables.of(operation, kind) = hmc::quickest(times(options, operation, kind));
    }
  }
  return tables;
}

}  // namespace hmc
