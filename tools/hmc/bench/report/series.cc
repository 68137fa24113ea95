#include "bench/report/series.h"

#include <algorithm>
#include <cmath>

namespace hmc::bench {

namespace {

bool canBeDrawn(size_t bytes, double value) {
  return bytes > 0 && value > 0 && std::isfinite(value);
}

Series& named(std::vector<Series>& all, const std::string& label) {
  auto found =
      std::find_if(all.begin(), all.end(), [&](const Series& s) { return s.label == label; });
  if (found != all.end()) return *found;
  all.push_back({label, false, {}});
  return all.back();
}

std::string lineLabel(const Figure& figure) {
  std::string label = figure.who + " " + figure.what;
  return figure.path.empty() ? label : label + ", " + figure.path;
}

// The sweep gives a plot its meaning; another section's lines say which they are.
std::string sectionSuffix(const Figure& figure, const std::string& mainSection) {
  return figure.section == mainSection ? "" : " (" + figure.section + ")";
}

// The section with the most figures of that unit.
std::string mainSectionOf(const Run& run, Unit unit) {
  std::map<std::string, size_t> counts;
  std::string best;
  for (const auto& figure : run.figures) {
    if (figure.unit == unit && ++counts[figure.section] > counts[best]) best = figure.section;
  }
  return best;
}

// Two measurements of the same ceiling: the better one is the limit.
void addCeiling(Series& series, size_t bytes, double value, Unit unit) {
  auto [at, isNew] = series.points.emplace(bytes, value);
  if (isNew) return;
  at->second =
      unit == Unit::nanoseconds ? std::min(at->second, value) : std::max(at->second, value);
}

}  // namespace

Panel panelOf(const Run& run, Unit unit) {
  const std::string mainSection = mainSectionOf(run, unit);
  Panel all;
  for (const auto& figure : run.figures) {
    if (figure.unit != unit || !canBeDrawn(figure.bytes, figure.value)) continue;
    auto& series = named(all.measured, lineLabel(figure) + sectionSuffix(figure, mainSection));
    series.ours = figure.who == "hmc";
    series.points[figure.bytes] = figure.value;
  }
  auto isSweep = [](const Series& series) { return series.points.size() > 1; };
  const bool anySweep = std::any_of(all.measured.begin(), all.measured.end(), isSweep);
  Panel shown;
  for (const auto& series : all.measured) {
    if (isSweep(series) || !anySweep) shown.measured.push_back(series);
  }
  for (const auto& figure : run.figures) {
    if (figure.unit != unit || !figure.ceiling) continue;
    const std::string suffix = sectionSuffix(figure, mainSection);
    const std::string label = lineLabel(figure) + suffix;
    const bool drawn = std::any_of(shown.measured.begin(), shown.measured.end(),
                                   [&](const Series& series) { return series.label == label; });
    if (!drawn || !canBeDrawn(figure.bytes, figure.ceiling->value)) continue;
    addCeiling(named(shown.ceilings, figure.ceiling->name + suffix), figure.bytes,
               figure.ceiling->value, unit);
  }
  return shown;
}

}  // namespace hmc::bench
