#include "bench/report/paths_table.h"

#include <algorithm>

#include <fmt/core.h>

#include "bench/report/grid.h"
#include "bench/report/units.h"

namespace hmc::bench {

namespace {

// As good as the fastest, within what two runs differ by.
constexpr double kSame = 1.1;

std::vector<Cell> cellsOf(const PathRow& row) {
  std::vector<Cell> cells{{sizeText(row.bytes)}, {row.what}};
  for (const auto& [transport, ns] : row.times)
    cells.push_back({timeText(ns), transport == row.taken ? Paint::bold : Paint::none});
  cells.push_back({row.taken});
  cells.push_back({verdictText(row), isWellChosen(row) ? Paint::good : Paint::bad});
  return cells;
}

}  // namespace

std::string verdictText(const PathRow& row) {
  const Quickest quickest = quickestOf(row);
  if (quickest.factor <= kSame) return "best";
  if (isWellChosen(row)) {
    return fmt::format("good enough: {} is {:.2f} times as fast", quickest.transport,
                       quickest.factor);
  }
  return fmt::format("NOT best: {} is {:.1f} times as fast", quickest.transport, quickest.factor);
}

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

}  // namespace hmc::bench
