#include "bench/figure.h"

#include <cmath>

namespace hmc::bench {

std::optional<double> percentOfCeiling(const Figure& figure) {
  if (!figure.ceiling) return std::nullopt;
  const double value = figure.value;
  const double limit = figure.ceiling->value;
  // What was not measured is no share of anything.
  if (!(value > 0) || !(limit > 0) || std::isinf(value) || std::isinf(limit)) return std::nullopt;
  return 100 * (figure.unit == Unit::nanoseconds ? limit / value : value / limit);
}

}  // namespace hmc::bench
