#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <vector>

#include <fmt/core.h>

#include "bench/report/grid.h"
#include "bench/report/report.h"
#include "bench/report/units.h"

namespace hmc::bench {

namespace {

std::vector<std::string> sectionsOf(const Run& run) {
  std::vector<std::string> names;
  for (const auto& measurement : run.measurements) {
    if (std::find(names.begin(), names.end(), measurement.section) == names.end()) {
      names.push_back(measurement.section);
    }
  }
  return names;
}

// By size, and in the order of measuring where the size is the same.
std::vector<Measurement> measurementsOf(const Run& run, const std::string& section) {
  std::vector<Measurement> measurements;
  for (const auto& measurement : run.measurements) {
    if (measurement.section == section) measurements.push_back(measurement);
  }
  std::stable_sort(measurements.begin(), measurements.end(),
                   [](const Measurement& a, const Measurement& b) { return a.bytes < b.bytes; });
  return measurements;
}

Paint paintOf(double percent) {
  if (percent >= 90) return Paint::good;
  return percent >= 50 ? Paint::fair : Paint::none;
}

std::vector<Cell> rowOf(const Measurement& measurement, bool sameSizeAsAbove) {
  const Paint own = measurement.who == "hmc" ? Paint::none : Paint::faint;
  std::vector<Cell> row{{sameSizeAsAbove ? "" : sizeText(measurement.bytes), Paint::none},
                        {measurement.who, own},
                        {measurement.what, own},
                        {measurement.path, own}};
  const bool time = measurement.unit == Unit::nanoseconds;
  row.push_back({time ? timeText(measurement.value) : "", Paint::bold});
  row.push_back({time && measurement.spread ? timeText(measurement.spread->p99) : "", own});
  row.push_back({time && measurement.spread ? timeText(measurement.spread->p999) : "", own});
  row.push_back({time ? "" : speedText(measurement.value), Paint::bold});
  row.push_back({measurement.ceiling ? measurement.ceiling->name : "", Paint::faint});
  row.push_back({measurement.ceiling ? valueText(measurement.ceiling->value, measurement.unit) : "",
                 Paint::faint});
  const auto percent = percentOfCeiling(measurement);
  row.push_back({percent ? percentText(*percent) : "", percent ? paintOf(*percent) : Paint::none});
  return row;
}

std::string sectionText(const std::string& name, const std::vector<Measurement>& measurements,
                        bool colour) {
  Grid grid({{"size", true},
             {"who"},
             {"what"},
             {"path"},
             {"P50", true},
             {"P99", true},
             {"P99.9", true},
             {"speed", true},
             {"ceiling"},
             {"", true},
             {"of ceiling", true}});
  for (size_t i = 0; i < measurements.size(); ++i) {
    grid.add(rowOf(measurements[i], i > 0 && measurements[i - 1].bytes == measurements[i].bytes));
  }
  return painted(name, Paint::bold, colour) + "\n" + grid.text(colour);
}

std::string targetsText(const std::vector<Target>& targets, bool colour) {
  Grid grid(
      {{"what"}, {"measured", true}, {"against"}, {"ratio", true}, {"limit", true}, {"result"}});
  size_t missed = 0;
  for (const auto& target : targets) {
    missed += target.met ? 0 : 1;
    grid.add({{target.what},
              {target.measured},
              {target.against},
              {std::isfinite(target.ratio) ? fmt::format("{:.2f}", target.ratio) : "-"},
              {target.limit},
              {target.met ? "met" : "MISSED", target.met ? Paint::good : Paint::bad}});
  }
  return painted("targets", Paint::bold, colour) + "\n" + grid.text(colour) +
         fmt::format("  {} of {} met\n", targets.size() - missed, targets.size());
}

std::string headerText(const Run& run, bool colour) {
  size_t width = 0;
  for (const auto& [name, value] : run.header) width = std::max(width, name.size());
  std::string out;
  for (const auto& [name, value] : run.header) {
    out += painted(fmt::format("{:<{}}", name, width), Paint::faint, colour) + "  " + value + "\n";
  }
  return out;
}

// "best", or how much better another one is.
std::string verdictText(const PathRow& row) {
  // As good as the fastest, within what two runs differ by.
  constexpr double kSame = 1.1;
  const Quickest quickest = quickestOf(row);
  if (quickest.factor <= kSame) return "best";
  if (isWellChosen(row)) {
    return fmt::format("good enough: {} is {:.2f} times as fast", quickest.transport,
                       quickest.factor);
  }
  return fmt::format("NOT best: {} is {:.1f} times as fast", quickest.transport, quickest.factor);
}

std::vector<Cell> cellsOf(const PathRow& row) {
  std::vector<Cell> cells{{sizeText(row.bytes)}, {row.what}};
  for (const auto& [transport, ns] : row.times)
    cells.push_back({timeText(ns), transport == row.taken ? Paint::bold : Paint::none});
  cells.push_back({row.taken});
  cells.push_back({verdictText(row), isWellChosen(row) ? Paint::good : Paint::bad});
  return cells;
}

// A column for each transport, which one is taken, and whether it should be.
std::string pathsText(const Run& run, bool colour) {
  std::vector<Grid::Column> columns{{"size", true}, {"what"}};
  for (const auto& [transport, ns] : run.paths.front().times) columns.push_back({transport, true});
  columns.push_back({"taken"});
  columns.push_back({"verdict"});
  Grid grid(columns);
  for (const PathRow& row : run.paths) grid.add(cellsOf(row));
  const auto well = std::count_if(run.paths.begin(), run.paths.end(), isWellChosen);
  return painted("all paths", Paint::bold, colour) + "\n" + grid.text(colour) +
         fmt::format("  {} of {} well chosen{}\n", well, run.paths.size(),
                     static_cast<size_t>(well) == run.paths.size()
                         ? ""
                         : "; save the times with --save and name the file in HMC_MEASUREMENTS");
}

}  // namespace

bool wantsColour(int fd) {
  const char* refused = std::getenv("NO_COLOR");
  const char* terminal = std::getenv("TERM");
  return isatty(fd) != 0 && (refused == nullptr || *refused == '\0') &&
         (terminal == nullptr || std::string(terminal) != "dumb");
}

std::string tableText(const Run& run, bool colour) {
  std::string out = headerText(run, colour);
  auto part = [&](const std::string& text) { out += out.empty() ? text : "\n" + text; };
  for (const auto& section : sectionsOf(run)) {
    part(sectionText(section, measurementsOf(run, section), colour));
  }
  if (!run.paths.empty()) part(pathsText(run, colour));
  if (!run.notes.empty()) {
    std::string notes;
    for (const auto& note : run.notes) notes += "  " + note + "\n";
    part(painted("notes", Paint::bold, colour) + "\n" + notes);
  }
  if (!run.targets.empty()) part(targetsText(run.targets, colour));
  return out;
}

}  // namespace hmc::bench
