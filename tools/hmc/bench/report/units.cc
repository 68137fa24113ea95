#include "bench/report/units.h"

#include <array>
#include <cmath>

#include <fmt/core.h>

namespace hmc::bench {

namespace {

// "-" for what was not measured.
std::string threeDigits(double value, const char* unit) {
  if (!std::isfinite(value) || value < 0) return "-";
  // 9.995 is printed as 10.0: the limits are where rounding adds a digit.
  const int decimals = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
  return fmt::format("{:.{}f}{}", value, decimals, unit);
}

}  // namespace

std::string timeText(double nanoseconds) {
  if (nanoseconds < 999.5) return threeDigits(nanoseconds, " ns");
  if (nanoseconds < 999.5e3) return threeDigits(nanoseconds / 1e3, " us");
  if (nanoseconds < 999.5e6) return threeDigits(nanoseconds / 1e6, " ms");
  return threeDigits(nanoseconds / 1e9, " s");
}

std::string sizeText(size_t bytes) {
  constexpr std::array<const char*, 5> kUnits{"B", "KiB", "MiB", "GiB", "TiB"};
  auto value = static_cast<double>(bytes);
  size_t unit = 0;
  while (value >= 1024 && unit + 1 < kUnits.size()) {
    value /= 1024;
    ++unit;
  }
  // Whole numbers stay whole: sizes are mostly powers of two.
  if (value == std::floor(value)) return fmt::format("{:.0f} {}", value, kUnits[unit]);
  return fmt::format("{:.1f} {}", value, kUnits[unit]);
}

std::string speedText(double gigabytesPerSecond) {
  if (gigabytesPerSecond > 0 && gigabytesPerSecond < 0.0995) {
    return fmt::format("{:.4f} GB/s", gigabytesPerSecond);
  }
  return threeDigits(gigabytesPerSecond, " GB/s");
}

std::string valueText(double value, Unit unit) {
  return unit == Unit::nanoseconds ? timeText(value) : speedText(value);
}

std::string percentText(double percent) {
  if (!std::isfinite(percent)) return "-";
  // Nobody reads 1842 % as 18 times as much.
  if (percent >= 199.5) return threeDigits(percent / 100, " x");
  return fmt::format("{:.{}f} %", percent, percent < 9.95 ? 1 : 0);
}

const char* unitName(Unit unit) {
  return unit == Unit::nanoseconds ? "ns" : "GB/s";
}

}  // namespace hmc::bench
