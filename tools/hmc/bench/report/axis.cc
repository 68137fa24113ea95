#include "bench/report/axis.h"

#include <algorithm>
#include <cmath>

#include <fmt/core.h>

#include "bench/report/units.h"

namespace hmc::bench {

namespace {

constexpr int kMostSizeLabels = 8;
constexpr int kMostSpeedLabels = 8;

std::string decadeText(int exponent) {
  static constexpr const char* kUnits[] = {"ns", "\u00b5s", "ms", "s"};
  const int unit = std::clamp(exponent / 3, 0, 3);
  return fmt::format("{:g} {}", std::pow(10, exponent - 3 * unit), kUnits[unit]);
}

// 1, 2 or 5 times a power of ten, so that at most so many steps reach `top`.
double niceStep(double top, int steps) {
  const double rough = top / steps;
  const double power = std::pow(10, std::floor(std::log10(rough)));
  for (double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= rough * 0.999) return factor * power;
  }
  return 10 * power;
}

}  // namespace

Axis::Axis(bool logarithmic, double low, double high)
    : logarithmic_(logarithmic), low_(low), high_(high) {}

Axis Axis::sizes(double smallest, double largest) {
  const int first = static_cast<int>(std::floor(std::log2(smallest)));
  const int last = std::max(first + 1, static_cast<int>(std::ceil(std::log2(largest))));
  // A little air, so that no marker sits on the frame.
  const double air = std::exp2(0.02 * (last - first) + 0.15);
  Axis axis(true, std::exp2(first) / air, std::exp2(last) * air);
  const int every = (last - first) / kMostSizeLabels + 1;
  for (int power = first; power <= last; ++power) {
    const double value = std::exp2(power);
    const bool labelled = power >= 0 && (power - first) % every == 0;
    axis.ticks_.push_back({value, labelled ? sizeText(static_cast<size_t>(value)) : ""});
  }
  return axis;
}

Axis Axis::times(double smallest, double largest) {
  const int first = static_cast<int>(std::floor(std::log10(smallest)));
  const int last = std::max(first + 1, static_cast<int>(std::ceil(std::log10(largest))));
  Axis axis(true, std::pow(10, first), std::pow(10, last));
  for (int power = first; power <= last; ++power) {
    axis.ticks_.push_back({std::pow(10, power), decadeText(power)});
    for (int i = 2; power < last && i < 10; ++i) {
      axis.ticks_.push_back({i * std::pow(10, power), ""});
    }
  }
  return axis;
}

Axis Axis::speeds(double largest) {
  const double step = niceStep(largest * 1.04, kMostSpeedLabels);
  const int steps = static_cast<int>(std::ceil(largest * 1.04 / step - 1e-9));
  Axis axis(false, 0, step * steps);
  for (int i = 0; i <= steps; ++i) axis.ticks_.push_back({i * step, fmt::format("{:g}", i * step)});
  return axis;
}

void Axis::place(double from, double to) {
  from_ = from;
  to_ = to;
}

double Axis::scaled(double value) const {
  return logarithmic_ ? std::log10(value) : value;
}

double Axis::pixel(double value) const {
  const double share = (scaled(value) - scaled(low_)) / (scaled(high_) - scaled(low_));
  return from_ + share * (to_ - from_);
}

}  // namespace hmc::bench
