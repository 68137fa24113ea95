#include "bench/report/table.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <vector>

#include <fmt/core.h>

#include "bench/report/grid.h"
#include "bench/report/paths_table.h"
#include "bench/report/units.h"

namespace hmc::bench {

namespace {

std::vector<std::string> sectionsOf(const Run& run) {
  std::vector<std::string> names;
  for (const auto& figure : run.figures) {
    if (std::find(names.begin(), names.end(), figure.section) == names.end()) {
      names.push_back(figure.section);
    }
  }
  return names;
}

// By size, and in the order of measuring where the size is the same.
std::vector<Figure> figuresOf(const Run& run, const std::string& section) {
  std::vector<Figure> figures;
  for (const auto& figure : run.figures) {
    if (figure.section == section) figures.push_back(figure);
  }
  std::stable_sort(figures.begin(), figures.end(),
                   [](const Figure& a, const Figure& b) { return a.bytes < b.bytes; });
  return figures;
}

Paint paintOf(double percent) {
  if (percent >= 90) return Paint::good;
  return percent >= 50 ? Paint::fair : Paint::none;
}

std::vector<Cell> rowOf(const Figure& figure, bool sameSizeAsAbove) {
  const Paint own = figure.who == "hmc" ? Paint::none : Paint::faint;
  std::vector<Cell> row{{sameSizeAsAbove ? "" : sizeText(figure.bytes), Paint::none},
                        {figure.who, own},
                        {figure.what, own},
                        {figure.path, own}};
  const bool time = figure.unit == Unit::nanoseconds;
  row.push_back({time ? timeText(figure.value) : "", Paint::bold});
  row.push_back({time && figure.spread ? timeText(figure.spread->p99) : "", own});
  row.push_back({time && figure.spread ? timeText(figure.spread->p999) : "", own});
  row.push_back({time ? "" : speedText(figure.value), Paint::bold});
  row.push_back({figure.ceiling ? figure.ceiling->name : "", Paint::faint});
  row.push_back(
      {figure.ceiling ? valueText(figure.ceiling->value, figure.unit) : "", Paint::faint});
  const auto percent = percentOfCeiling(figure);
  row.push_back({percent ? percentText(*percent) : "", percent ? paintOf(*percent) : Paint::none});
  return row;
}

std::string sectionText(const std::string& name, const std::vector<Figure>& figures, bool colour) {
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
  for (size_t i = 0; i < figures.size(); ++i) {
    grid.add(rowOf(figures[i], i > 0 && figures[i - 1].bytes == figures[i].bytes));
  }
  return painted(name, Paint::bold, colour) + "\n" + grid.text(colour);
}

std::string barsText(const std::vector<Bar>& bars, bool colour) {
  Grid grid(
      {{"what"}, {"measured", true}, {"against"}, {"ratio", true}, {"limit", true}, {"result"}});
  size_t missed = 0;
  for (const auto& bar : bars) {
    missed += bar.met ? 0 : 1;
    grid.add({{bar.what},
              {bar.measured},
              {bar.against},
              {std::isfinite(bar.ratio) ? fmt::format("{:.2f}", bar.ratio) : "-"},
              {bar.limit},
              {bar.met ? "met" : "MISSED", bar.met ? Paint::good : Paint::bad}});
  }
  return painted("bars", Paint::bold, colour) + "\n" + grid.text(colour) +
         fmt::format("  {} of {} met\n", bars.size() - missed, bars.size());
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
    part(sectionText(section, figuresOf(run, section), colour));
  }
  if (!run.paths.empty()) part(pathsText(run, colour));
  if (!run.notes.empty()) {
    std::string notes;
    for (const auto& note : run.notes) notes += "  " + note + "\n";
    part(painted("notes", Paint::bold, colour) + "\n" + notes);
  }
  if (!run.bars.empty()) part(barsText(run.bars, colour));
  return out;
}

}  // namespace hmc::bench
