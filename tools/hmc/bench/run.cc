#include "bench/run.h"

#include <algorithm>
#include <cmath>

namespace hmc::bench {

std::optional<double> percentOfCeiling(const Measurement& measurement) {
  if (!measurement.ceiling) return std::nullopt;
  const double value = measurement.value;
  const double limit = measurement.ceiling->value;
  // No share of what was not measured.
  if (!(value > 0) || !(limit > 0) || std::isinf(value) || std::isinf(limit)) return std::nullopt;
  return 100 * (measurement.unit == Unit::nanoseconds ? limit / value : value / limit);
}

Quickest quickestOf(const PathRow& row) {
  auto quickest =
      std::min_element(row.times.begin(), row.times.end(),
                       [](const auto& a, const auto& b) { return a.second < b.second; });
  auto taken = std::find_if(row.times.begin(), row.times.end(),
                            [&](const auto& one) { return one.first == row.taken; });
  if (taken == row.times.end()) return {row.taken, 1};
  return {quickest->first, taken->second / quickest->second};
}

bool isWellChosen(const PathRow& row) {
  // The library opens a second path only where it is that much faster.
  constexpr double kWorthAnotherPath = 1.2;
  return quickestOf(row).factor <= kWorthAnotherPath;
}

}  // namespace hmc::bench
