#include "bench/report/plot.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "bench/report/axis.h"
#include "bench/report/series.h"
#include "bench/report/svg.h"
#include "tools/bench_sample.h"

namespace hmc::bench {
namespace {

using testing::HasSubstr;
using testing::Not;

size_t countOf(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

// What is wrong with it as XML: tags that do not match, marks that are not escaped. Empty when
// good.
std::string xmlComplaint(const std::string& text) {
  std::vector<std::string> open;
  for (size_t at = 0; at < text.size();) {
    if (text[at] == '&') {
      const size_t end = text.find(';', at);
      if (end == std::string::npos || end - at > 6) return "a bare & at " + text.substr(at, 20);
    }
    if (text[at] == '>') return "a bare > before " + text.substr(at, 20);
    if (text[at] != '<') {
      ++at;
      continue;
    }
    const size_t end = text.find('>', at);
    if (end == std::string::npos) return "a tag without end";
    const std::string tag = text.substr(at + 1, end - at - 1);
    if (tag.find('<') != std::string::npos) return "a tag in a tag: " + tag;
    if (countOf(tag, "\"") % 2 != 0) return "quotes: " + tag;
    if (tag[0] == '/') {
      if (open.empty() || open.back() != tag.substr(1)) return "closes nothing: " + tag;
      open.pop_back();
    } else if (tag[0] != '?' && tag.back() != '/') {
      open.push_back(tag.substr(0, tag.find(' ')));
    }
    at = end + 1;
  }
  return open.empty() ? "" : "never closed: " + open.back();
}

TEST(Plot, isWellFormedWhateverWasMeasured) {
  for (const bench::Run& run : {sampleRun(), brokenRun(), bench::Run()}) {
    const std::string svg = plotText(run);
    EXPECT_EQ("", xmlComplaint(svg)) << svg;
    EXPECT_THAT(svg, Not(HasSubstr("nan")));
    EXPECT_THAT(svg, Not(HasSubstr("inf")));
    EXPECT_THAT(svg, Not(HasSubstr("\xff")));
  }
}

TEST(Plot, namesMachineAndDate) {
  EXPECT_THAT(plotText(sampleRun()),
              HasSubstr("box, &quot;two&quot; cores &amp; &lt;more&gt;  \u00b7  2026-01-31"));
}

TEST(Plot, drawsALinePerSeriesAndDashesTheCeilings) {
  const std::string svg = plotText(sampleRun());
  // In each panel hmc's and its ceiling's, and both again in the legend.
  EXPECT_EQ(6U, countOf(svg, "<polyline"));
  EXPECT_EQ(3U, countOf(svg, "stroke-dasharray"));
  EXPECT_EQ(1U, countOf(svg, ">hmc put, ipc<"));
  EXPECT_EQ(1U, countOf(svg, ">ceiling: memcpy<"));
  EXPECT_THAT(svg, HasSubstr(">32 KiB<"));
  EXPECT_THAT(svg, HasSubstr(">1 \u00b5s<"));
}

TEST(Plot, saysWhenThereIsNothingToDraw) {
  EXPECT_EQ(2U, countOf(plotText(bench::Run()), "nothing was measured"));
}

TEST(Plot, isWrittenToAFile) {
  const std::string path = testing::TempDir() + "bench_plot_test.svg";
  ASSERT_TRUE(writePlot(sampleRun(), path).ok());
  std::ifstream file(path);
  EXPECT_EQ(plotText(sampleRun()), std::string(std::istreambuf_iterator<char>(file), {}));
  std::remove(path.c_str());
  const Status status = writePlot(bench::Run(), "/no/such/folder/plot.svg");
  EXPECT_THAT(status.message(), HasSubstr("/no/such/folder/plot.svg: No such file"));
}

TEST(Series, leavesOutSinglePointsBesideASweep) {
  bench::Run run = sampleRun();
  auto panel = panelOf(run, Unit::nanoseconds);
  ASSERT_EQ(1U, panel.measured.size()) << "UCX was measured at one size only";
  EXPECT_EQ("hmc put, ipc", panel.measured[0].label);
  EXPECT_TRUE(panel.measured[0].ours);
  run.figures.erase(run.figures.begin());
  EXPECT_EQ(2U, panelOf(run, Unit::nanoseconds).measured.size())
      << "single points are all there is";
}

TEST(Series, saysWhichSectionALineIsFrom) {
  bench::Run run = sampleRun();
  for (size_t bytes : {size_t{64}, size_t{128}}) {
    run.figures.push_back({.section = "control",
                           .what = "tag round trip",
                           .path = "ipc",
                           .bytes = bytes,
                           .value = 300,
                           .ceiling = Ceiling{"flag ping-pong", 150}});
  }
  auto panel = panelOf(run, Unit::nanoseconds);
  ASSERT_EQ(2U, panel.measured.size());
  EXPECT_EQ("hmc tag round trip, ipc (control)", panel.measured[1].label);
  EXPECT_EQ("flag ping-pong (control)", panel.ceilings[1].label);
}

TEST(Series, takesTheBetterOfTwoCeilings) {
  bench::Run run;
  for (double limit : {9.0, 11.0, 10.0}) {
    run.figures.push_back({.section = "bandwidth",
                           .what = "put",
                           .bytes = 8,
                           .unit = Unit::gigabytesPerSecond,
                           .value = 5,
                           .ceiling = Ceiling{"memcpy", limit}});
  }
  EXPECT_EQ(11, panelOf(run, Unit::gigabytesPerSecond).ceilings.at(0).points.at(8));
}

TEST(Axis, marksPowersOfTwoAndLabelsSomeOfThem) {
  Axis axis = Axis::sizes(8, 64 << 20);
  size_t labels = 0;
  for (const auto& tick : axis.ticks()) labels += tick.label.empty() ? 0 : 1;
  EXPECT_EQ(24U, axis.ticks().size());
  EXPECT_EQ(8U, labels);
  EXPECT_EQ("8 B", axis.ticks().front().label);
}

TEST(Axis, spansEvenASingleValue) {
  for (Axis axis : {Axis::sizes(8, 8), Axis::times(30, 30), Axis::speeds(0.5)}) {
    axis.place(100, 0);
    const double low = axis.pixel(axis.ticks().front().value);
    const double high = axis.pixel(axis.ticks().back().value);
    EXPECT_GT(low, high + 50);
    EXPECT_LE(low, 100);
    EXPECT_GE(high, 0);
  }
}

TEST(Svg, replacesWhatIsNoText) {
  EXPECT_EQ("a&amp;b &lt;c&gt; &quot;d&quot;", xmlText("a&b <c> \"d\""));
  EXPECT_EQ("?x?\u00b5?", xmlText("\x01x\xff\u00b5\xc3"));
}

}  // namespace
}  // namespace hmc::bench
