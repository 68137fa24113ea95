#include "bench/timing.h"

namespace hmc::bench {

namespace {

double at(const Samples& sorted, double part) {
  return sorted[static_cast<size_t>(part * static_cast<double>(sorted.size() - 1) + 0.5)];
}

}  // namespace

double median(Samples values) {
  return percentiles(std::move(values)).p50;
}

Percentiles percentiles(Samples values) {
  if (values.empty()) return {};
  std::sort(values.begin(), values.end());
  return {at(values, 0.5), at(values, 0.99), at(values, 0.999)};
}

}  // namespace hmc::bench
