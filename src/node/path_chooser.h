#pragma once

#include <array>
#include <vector>

#include "node/figures.h"
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

// Asks transport/select.h, with what is known about the speed of paths to one peer's memory of one
// kind. Options are in the order in which they are liked.
class PathChooser {
 public:
  // `figures` must outlive it. `away`: the peer is on another host.
  PathChooser(const Figures& figures, bool away, DeviceKind remote)
      : figures_(figures), away_(away), remote_(remote) {}

  // Indexes of those that win for some operation, kind of local memory and size.
  std::vector<size_t> worthHaving(const std::vector<PathOption>& options) const;
  PathTables quickest(const std::vector<PathOption>& options) const;

  PathTimes times(const PathOption& option, OpKind operation, DeviceKind local) const;

 private:
  std::vector<PathTimes> allTimes(const std::vector<PathOption>& options, OpKind operation,
                                  DeviceKind local) const;

  const Figures& figures_;
  const bool away_;
  const DeviceKind remote_;
};

}  // namespace hmc
