#include "bench/figure.h"

#include <cmath>

namespace hmc::bench {

std::optional<double> percentOfCeiling(const Figure& figure) {
  if (!figure.ceiling) return std::nullopt;
  const double limit = figure.ceiling->value;
  // What was not measured is no share of anything.
  if (!(figure.value > 0) || !(limit > 0)) return std::nullopt;
  const double share =
      figure.unit == Unit::nanoseconds ? limit / figure.value : figure.value / limit;
  if (!std::isfinite(share)) return std::nullopt;
  return 100 * share;
}

}  // namespace hmc::bench
