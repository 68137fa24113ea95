#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "transport/transport.h"

namespace hmc {

// A transport as a peer announces it.
struct TransportOffer {
  std::string name;
  std::string domain;
};

// One transport and whether this pair of peers can use it. `reason` is worded for a person.
struct TransportChoice {
  std::string name;
  bool usable = false;
  std::string reason;
};

// For each of our transports, in our order of preference: can we reach a peer that offers `theirs`?
std::vector<TransportChoice> chooseTransports(const std::vector<const Transport*>& ours,
                                              const std::vector<TransportOffer>& theirs);

// The memories at the two ends of a transfer, and where its bytes have to pass through the host
// because the transport cannot touch them.
struct MemoryEnds {
  DeviceKind local = DeviceKind::cpu;
  DeviceKind remote = DeviceKind::cpu;
  bool stagedHere = false;
  bool stagedThere = false;
};

// What one blocking transfer of `size` bytes typically takes on that path, in nanoseconds: right
// within a factor of a few.
double predict(const Transport::Path& path, const MemoryEnds& ends, uint64_t size);

// The time that a path takes for one operation of `size` bytes, in nanoseconds.
using PathTime = std::function<double(uint64_t size)>;

// Which path for which size. Finding it costs a compare where there is one path.
class PathTable {
 public:
  struct Range {
    uint64_t largest;  // of the sizes that take this path; UINT64_MAX in the last range
    size_t path;
  };
  PathTable() : ranges_{{UINT64_MAX, 0}} {}
  explicit PathTable(std::vector<Range> ranges) : ranges_(std::move(ranges)) {}

  size_t at(uint64_t size) const {
    auto range = ranges_.begin();
    while (size > range->largest) ++range;
    return range->path;
  }
  const std::vector<Range>& ranges() const { return ranges_; }

 private:
  std::vector<Range> ranges_;
};

// Which of the paths are worth opening; they come in our order of preference. A later one joins
// where it is `kWorthAnotherPath` times as fast for some size.
inline constexpr double kWorthAnotherPath = 1.2;
std::vector<size_t> worthHaving(const std::vector<PathTime>& paths);

// The fastest path for each size. Where two are about equal, the one of the next smaller size.
PathTable quickest(const std::vector<PathTime>& paths);

}  // namespace hmc
