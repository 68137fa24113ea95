#pragma once

#include <array>
#include <vector>

#include "node/measurements.h"
#include "transfer/engine.h"
#include "transport/select.h"

namespace hmc {

// A path to one peer's memory that could be taken, as far as choosing goes.
struct PathOption {
  const Engine* engine = nullptr;
  const Transport::Path* path = nullptr;  // none: nothing is known about its speed
  bool stagedThere = false;
};

// Which of some paths a transfer takes: by operation, kind of local memory and size.
class PathTables {
 public:
  PathTable& of(OpKind operation, DeviceKind local) {
    return tables_[static_cast<size_t>(operation)][static_cast<size_t>(local)];
  }
  const PathTable& of(OpKind operation, DeviceKind local) const {
    return tables_[static_cast<size_t>(operation)][static_cast<size_t>(local)];
  }

 private:
  std::array<std::array<PathTable, kDeviceKindCount>, 2> tables_;
};

// Chooses paths to one peer's memory of one kind, through transport/select.h: by typical times, or
// by measured ones where there are measurements of every option. The two are never compared with
// each other. Options come in our order of preference.
class PathChooser {
 public:
  // `measurements` must outlive it. `away`: the peer is on another host.
  PathChooser(const Measurements& measurements, bool away, DeviceKind remote)
      : measurements_(measurements), away_(away), remote_(remote) {}

  // Indexes of those that win for some operation, kind of local memory and size.
  std::vector<size_t> worthHaving(const std::vector<PathOption>& options) const;
  PathTables quickest(const std::vector<PathOption>& options) const;

  // Nanoseconds of one operation.
  double typical(const PathOption& option, DeviceKind local, uint64_t size) const;
  std::optional<double> measured(const PathOption& option, OpKind operation, DeviceKind local,
                                 uint64_t size) const;
  // That time is not one beyond the sizes that were measured.
  bool covers(const PathOption& option, OpKind operation, DeviceKind local, uint64_t size) const;

 private:
  // Under which name the option was measured; empty: not at all.
  std::string measuredAs(const PathOption& option, OpKind operation, DeviceKind local) const;
  std::vector<PathTime> times(const std::vector<PathOption>& options, OpKind operation,
                              DeviceKind local) const;

  const Measurements& measurements_;
  const bool away_;
  const DeviceKind remote_;
};

}  // namespace hmc
