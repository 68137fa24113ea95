#include "bench/report/plot.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <vector>

#include <fmt/core.h>

#include "bench/report/axis.h"
#include "bench/report/png.h"
#include "bench/report/series.h"
#include "bench/report/svg.h"

namespace hmc::bench {

namespace {

constexpr double kWidth = 1040;
constexpr double kPanelWidth = 424;
constexpr double kPanelHeight = 320;
constexpr double kPanelTop = 92;
constexpr std::array<double, 2> kPanelLeft{72, 590};
constexpr double kLegendTop = kPanelTop + kPanelHeight + 66;
constexpr double kLegendRow = 21;
constexpr double kLegendWidth = kWidth - kPanelLeft[0];
constexpr double kLegendSample = 42;  // the piece of line before the label

// Seven colours that people with any kind of colour vision can tell apart (Okabe and Ito's), and
// shapes for who prints in grey.
constexpr std::array kColours{"#0072B2", "#D55E00", "#009E73", "#CC79A7",
                              "#E69F00", "#56B4E9", "#4D4D4D"};
constexpr std::array kMarkers{Marker::circle, Marker::square, Marker::triangle, Marker::diamond,
                              Marker::plus};
constexpr std::array kDashes{"7 4", "2 3", "9 3 2 3", "4 2", "12 4"};
constexpr const char* kCeilingColour = "#6b6b6b";

// How the line of one label looks, in both panels and in the legend.
struct Look {
  std::string label;
  bool ceiling = false;
  bool ours = false;
  Stroke stroke;
  Marker marker = Marker::circle;
};

class Looks {
 public:
  void add(const std::vector<Series>& all, bool ceiling) {
    for (const auto& series : all) {
      if (find(series.label, ceiling) != nullptr) continue;
      const size_t index = count(ceiling);
      Look look{series.label, ceiling, series.ours, {}, kMarkers[index % kMarkers.size()]};
      if (ceiling) {
        look.stroke = {kCeilingColour, 1.5, kDashes[index % kDashes.size()]};
      } else {
        look.stroke = {kColours[index % kColours.size()], series.ours ? 2.3 : 1.4, ""};
      }
      looks_.push_back(look);
    }
  }
  const Look* find(const std::string& label, bool ceiling) const {
    auto found = std::find_if(looks_.begin(), looks_.end(), [&](const Look& look) {
      return look.label == label && look.ceiling == ceiling;
    });
    return found == looks_.end() ? nullptr : &*found;
  }
  const std::vector<Look>& all() const { return looks_; }

 private:
  size_t count(bool ceiling) const {
    return static_cast<size_t>(std::count_if(
        looks_.begin(), looks_.end(), [&](const Look& look) { return look.ceiling == ceiling; }));
  }
  std::vector<Look> looks_;
};

struct Range {
  double low = 0;
  double high = 0;
  void include(double value) {
    low = high == 0 ? value : std::min(low, value);
    high = std::max(high, value);
  }
};

struct Extent {
  Range sizes;
  Range values;
};

Extent extentOf(const Panel& panel) {
  Extent extent;
  for (const auto* group : {&panel.measured, &panel.ceilings}) {
    for (const auto& series : *group) {
      for (const auto& [bytes, value] : series.points) {
        extent.sizes.include(static_cast<double>(bytes));
        extent.values.include(value);
      }
    }
  }
  return extent;
}

void drawFrame(Svg& svg, double left, const Axis& x, const Axis& y) {
  const double right = left + kPanelWidth;
  const double bottom = kPanelTop + kPanelHeight;
  for (const auto& tick : y.ticks()) {
    const double at = y.pixel(tick.value);
    const bool major = !tick.label.empty();
    svg.line({left, at}, {right, at}, {major ? "#d9d9d9" : "#f1f1f1", major ? 1.0 : 0.7, ""});
    if (major) {
      svg.text({left - 8, at + 4}, tick.label, {.size = 12, .anchor = Anchor::end});
    }
  }
  for (const auto& tick : x.ticks()) {
    const double at = x.pixel(tick.value);
    const bool major = !tick.label.empty();
    if (major) svg.line({at, kPanelTop}, {at, bottom}, {"#ececec", 1, ""});
    svg.line({at, bottom}, {at, bottom + (major ? 6.0 : 3.5)}, {"#333333", 1, ""});
    if (major) {
      svg.text({at, bottom + 20}, tick.label, {.size = 11, .anchor = Anchor::middle});
    }
  }
  svg.line({left, kPanelTop}, {left, bottom}, {"#333333", 1.2, ""});
  svg.line({left, bottom}, {right, bottom}, {"#333333", 1.2, ""});
}

void drawSeries(Svg& svg, const Series& series, const Look& look, const Axis& x, const Axis& y) {
  std::vector<Point> points;
  for (const auto& [bytes, value] : series.points) {
    points.push_back({x.pixel(static_cast<double>(bytes)), y.pixel(value)});
  }
  if (look.ceiling && points.size() == 1) {  // a limit of one size is still a line
    points = {{points[0].x - 10, points[0].y}, {points[0].x + 10, points[0].y}};
  }
  if (points.size() > 1) svg.path(points, look.stroke);
  if (look.ceiling) return;
  for (const auto& point : points) {
    svg.marker(look.marker, point, look.stroke.colour, !look.ours);
  }
}

struct Caption {
  std::string title;
  std::string hint;
  std::string vertical;
};

void drawPanel(Svg& svg, double left, const Panel& panel, Unit unit, const Looks& looks,
               const Caption& caption) {
  svg.text({left, kPanelTop - 14}, caption.title, {.size = 14, .bold = true});
  svg.text({left + kPanelWidth, kPanelTop - 14}, caption.hint,
           {.size = 11, .colour = "#6b6b6b", .anchor = Anchor::end});
  const double middle = kPanelTop + kPanelHeight / 2;
  const Extent extent = extentOf(panel);
  if (extent.values.high <= 0) {
    svg.text({left + kPanelWidth / 2, middle}, "nothing was measured",
             {.size = 13, .colour = "#6b6b6b", .anchor = Anchor::middle});
    return;
  }
  Axis x = Axis::sizes(extent.sizes.low, extent.sizes.high);
  Axis y = unit == Unit::nanoseconds ? Axis::times(extent.values.low, extent.values.high)
                                     : Axis::speeds(extent.values.high);
  x.place(left, left + kPanelWidth);
  y.place(kPanelTop + kPanelHeight, kPanelTop);
  drawFrame(svg, left, x, y);
  svg.text({left - 58, middle}, caption.vertical,
           {.size = 12, .anchor = Anchor::middle, .upwards = true});
  svg.text({left + kPanelWidth / 2, kPanelTop + kPanelHeight + 40}, "size of one operation",
           {.size = 12, .anchor = Anchor::middle});
  for (const auto& series : panel.ceilings) {
    drawSeries(svg, series, *looks.find(series.label, true), x, y);
  }
  for (bool ours : {false, true}) {  // ours on top
    for (const auto& series : panel.measured) {
      if (series.ours == ours) drawSeries(svg, series, *looks.find(series.label, false), x, y);
    }
  }
}

struct Legend {
  size_t columns = 1;
  size_t rows = 0;
};

std::string legendLabel(const Look& look) {
  return look.ceiling ? "ceiling: " + look.label : look.label;
}

// As many columns as the longest label allows.
Legend legendOf(const std::vector<Look>& looks) {
  size_t longest = 1;
  for (const auto& look : looks) longest = std::max(longest, legendLabel(look).size());
  constexpr double kLetter = 6.9;  // of the widest usual font
  const double column = kLegendSample + kLetter * static_cast<double>(longest) + 14;
  Legend legend;
  legend.columns = std::clamp<size_t>(static_cast<size_t>(kLegendWidth / column), 1, 4);
  legend.rows = (looks.size() + legend.columns - 1) / legend.columns;
  return legend;
}

// Column by column, so that neighbours in the run stand below each other.
void drawLegend(Svg& svg, const std::vector<Look>& looks) {
  const Legend legend = legendOf(looks);
  const double column = kLegendWidth / static_cast<double>(legend.columns);
  for (size_t i = 0; i < looks.size(); ++i) {
    const double left = kPanelLeft[0] + static_cast<double>(i / legend.rows) * column;
    const double y = kLegendTop + static_cast<double>(i % legend.rows) * kLegendRow;
    svg.path({{left, y}, {left + 34, y}}, looks[i].stroke);
    if (!looks[i].ceiling) {
      svg.marker(looks[i].marker, {left + 17, y}, looks[i].stroke.colour, !looks[i].ours);
    }
    svg.text({left + kLegendSample, y + 4}, legendLabel(looks[i]), {.size = 12});
  }
}

// "Xeon, 2 cores · 2026-01-31": what the header says under these names.
std::string subtitleOf(const Run& run) {
  std::string out;
  for (const char* wanted : {"machine", "date"}) {
    for (const auto& [name, value] : run.header) {
      if (name == wanted) out += (out.empty() ? "" : "  \u00b7  ") + value;
    }
  }
  constexpr size_t kMost = 150;
  if (out.size() > kMost) out = out.substr(0, kMost - 3) + "...";
  return out;
}

}  // namespace

std::string plotText(const Run& run) {
  const Panel latency = panelOf(run, Unit::nanoseconds);
  const Panel bandwidth = panelOf(run, Unit::gigabytesPerSecond);
  Looks looks;
  for (const auto* panel : {&latency, &bandwidth}) looks.add(panel->measured, false);
  for (const auto* panel : {&latency, &bandwidth}) looks.add(panel->ceilings, true);
  const size_t rows = legendOf(looks.all()).rows;
  const std::string title = "HMC: latency and bandwidth over size";
  Svg svg(kWidth, kLegendTop + kLegendRow * static_cast<double>(rows) + 6, title);
  svg.text({kPanelLeft[0], 30}, title, {.size = 18, .bold = true});
  svg.text({kPanelLeft[0], 51}, subtitleOf(run), {.size = 12, .colour = "#555555"});
  drawPanel(svg, kPanelLeft[0], latency, Unit::nanoseconds, looks,
            {"Latency", "lower is better", "time of one operation"});
  drawPanel(svg, kPanelLeft[1], bandwidth, Unit::gigabytesPerSecond, looks,
            {"Bandwidth", "higher is better", "GB/s"});
  drawLegend(svg, looks.all());
  return std::move(svg).finish();
}

Status writePlot(const Run& run, const std::string& path) {
  const std::string text = plotText(run);
  if (isPng(path)) return writePng(text, path);
  std::FILE* file = std::fopen(path.c_str(), "we");
  bool written = file != nullptr && std::fwrite(text.data(), 1, text.size(), file) == text.size();
  int why = errno;
  if (file != nullptr && std::fclose(file) != 0 && written) {
    written = false;
    why = errno;
  }
  if (written) return Status();
  return Status(Code::failed,
                fmt::format("the plot could not be written to {}: {}", path, std::strerror(why)));
}

}  // namespace hmc::bench
