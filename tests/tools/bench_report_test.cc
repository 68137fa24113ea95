#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "bench/report/report.h"
#include "bench/report/units.h"
#include "tools/bench_sample.h"

namespace hmc::bench {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

TEST(Units, keepThreeDigitsAndChooseTheUnit) {
  EXPECT_EQ("1.70 ns", timeText(1.7));
  EXPECT_EQ("999 ns", timeText(999.4));
  EXPECT_EQ("1.00 us", timeText(999.6));
  EXPECT_EQ("10.0 us", timeText(9999));
  EXPECT_EQ("12.3 ms", timeText(12.34e6));
  EXPECT_EQ("2.00 s", timeText(2e9));
  EXPECT_EQ("8 B", sizeText(8));
  EXPECT_EQ("1023 B", sizeText(1023));
  EXPECT_EQ("64 KiB", sizeText(65536));
  EXPECT_EQ("1.5 MiB", sizeText(3 << 19));
  EXPECT_EQ("11.2 GB/s", speedText(11.23));
  EXPECT_EQ("0.0070 GB/s", speedText(0.007));
}

TEST(Percent, isTheShareOfTheCeilingInBothUnits) {
  Measurement measurement{.unit = Unit::nanoseconds, .value = 40, .ceiling = Ceiling{"memcpy", 10}};
  EXPECT_DOUBLE_EQ(25, *percentOfCeiling(measurement));
  measurement.unit = Unit::gigabytesPerSecond;
  EXPECT_DOUBLE_EQ(400, *percentOfCeiling(measurement));
  measurement.ceiling.reset();
  EXPECT_FALSE(percentOfCeiling(measurement));
}

TEST(Percent, becomesARatioFromTwiceTheCeilingOn) {
  EXPECT_EQ("9.6 %", percentText(9.6));
  EXPECT_EQ("199 %", percentText(199.4));
  EXPECT_EQ("2.00 x", percentText(199.6));
  EXPECT_EQ("18.4 x", percentText(1842));
}

TEST(Percent, hasNoValueForWhatWasNotMeasured) {
  for (const auto& measurement : brokenRun().measurements)
    EXPECT_FALSE(percentOfCeiling(measurement));
}

TEST(Table, showsEachSectionBySize) {
  const std::string text = tableText(sampleRun(), false);
  EXPECT_THAT(text, HasSubstr("machine  box, \"two\" cores & <more>\n"));
  EXPECT_THAT(text, ContainsRegex(
                        "8 B +hmc +put +ipc +20.0 ns +24.0 ns +30.0 ns +memcpy +2.00 ns +10 %\n"));
  EXPECT_THAT(text, ContainsRegex("UCX 1.13.1 +put, streamed +shm +34.0 ns\n"));
  EXPECT_THAT(text, ContainsRegex("64 KiB +hmc +put +ipc +6.40 us .* 95 %\n"));
  EXPECT_THAT(text, ContainsRegex("64 KiB +hmc +put +ipc +9.90 GB/s +memcpy +11.0 GB/s +90 %\n"));
  EXPECT_LT(text.find("20.0 ns"), text.find("6.40 us")) << "sizes go up";
  EXPECT_LT(text.find("6.40 us"), text.find("9.90 GB/s")) << "sections keep their order";
}

TEST(Table, endsWithTheTargets) {
  const std::string text = tableText(sampleRun(), false);
  EXPECT_THAT(text, ContainsRegex("put 8 B +20.0 ns +20.00 +<= 25 ns +met\n"));
  EXPECT_THAT(text,
              ContainsRegex("put 64 KiB +6.40 us +memcpy 6.08 us +1.05 +<= 1.05 x +MISSED\n"));
  EXPECT_THAT(text, testing::EndsWith("  1 of 2 met\n"));
  EXPECT_THAT(text, HasSubstr("verbs: no device\n"));
}

TEST(Table, showsEveryPathAndWhetherTheChoiceWasGood) {
  bench::Run run;
  run.paths = {{"put", 8, {{"ipc", 7}, {"tcp", 7000}}, "ipc"},
               {"put", 65536, {{"ipc", 1150}, {"tcp", 1000}}, "ipc"},
               {"get", 65536, {{"ipc", 4000}, {"tcp", 1000}}, "ipc"}};
  const std::string text = tableText(run, false);
  EXPECT_THAT(text, ContainsRegex("8 B +put +7.00 ns +7.00 us +ipc +best\n"));
  EXPECT_THAT(text, HasSubstr("good enough: tcp is 1.15 times as fast"));
  EXPECT_THAT(text, HasSubstr("NOT best: tcp is 4.0 times as fast"));
  EXPECT_THAT(text, HasSubstr("2 of 3 well chosen; save the times with --save"));
}

TEST(Table, leavesOutColumnsThatNobodyFills) {
  bench::Run run;
  run.measurements = {{.section = "s", .what = "put", .bytes = 8, .value = 5}};
  EXPECT_THAT(tableText(run, false), Not(HasSubstr("P99")));
  EXPECT_THAT(tableText(run, false), Not(HasSubstr("ceiling")));
  EXPECT_THAT(tableText(sampleRun(), false), HasSubstr("P99.9"));
}

TEST(Table, isColouredOnlyWhenAsked) {
  EXPECT_THAT(tableText(sampleRun(), false), Not(HasSubstr("\033")));
  EXPECT_THAT(tableText(sampleRun(), true), HasSubstr("\033[1;31mMISSED\033[0m"));
}

TEST(Table, aTargetWithoutItsCeilingIsNeitherMetNorMissed) {
  bench::Run run;
  run.targets = {{"put 8 B", "9.00 us", "", std::nan(""), "<= 1.1 x", false, /*compared=*/false}};
  EXPECT_THAT(tableText(run, false),
              ContainsRegex("put 8 B +9.00 us +- +<= 1.1 x +not compared\n"));
  EXPECT_THAT(tableText(run, false), testing::EndsWith("  0 of 1 met\n"));
  EXPECT_THAT(csvText(run), HasSubstr("9.00 us,,,<= 1.1 x,\n"));
}

TEST(Table, showsNoNumberThatIsNone) {
  for (const bench::Run& run : {bench::Run(), brokenRun()}) {
    const std::string text = tableText(run, false);
    EXPECT_THAT(text, Not(HasSubstr("nan")));
    EXPECT_THAT(text, Not(HasSubstr("inf")));
  }
  EXPECT_EQ("", tableText(bench::Run(), true));
}

TEST(Csv, hasARecordForEverything) {
  const std::string text = csvText(sampleRun());
  EXPECT_THAT(text,
              testing::StartsWith("record,name,section,who,what,path,bytes,unit,value,p99,p999,"
                                  "ceiling,ceiling_value,percent_of_ceiling,text,against,ratio,"
                                  "limit,met\n"));
  EXPECT_THAT(text,
              HasSubstr("\nheader,machine,,,,,,,,,,,,,\"box, \"\"two\"\" cores & <more>\",,,,\n"));
  EXPECT_THAT(
      text,
      HasSubstr("\nmeasurement,,blocking latency,hmc,put,ipc,8,ns,20,24,30,memcpy,2,10,,,,,\n"));
  EXPECT_THAT(
      text,
      HasSubstr(
          "\nmeasurement,,blocking latency,UCX 1.13.1,\"put, streamed\",shm,8,ns,34,,,,,,,,,,\n"));
  EXPECT_THAT(text, HasSubstr("\ntarget,,,,put 8 B,,,,,,,,,,20.0 ns,,20,<= 25 ns,true\n"));
  EXPECT_THAT(text, HasSubstr("\nnote,,,,,,,,,,,,,,verbs: no device,,,,\n"));
}

TEST(Csv, leavesEmptyWhatIsNoNumber) {
  const std::string text = csvText(brokenRun());
  EXPECT_THAT(text, Not(HasSubstr("nan")));
  EXPECT_THAT(text, Not(HasSubstr("inf")));
}

TEST(Json, holdsEverything) {
  const auto all = nlohmann::json::parse(jsonText(sampleRun()));
  EXPECT_EQ("2026-01-31", all["header"]["date"]);
  ASSERT_EQ(5U, all["measurements"].size());
  const auto& small = all["measurements"][1];
  EXPECT_EQ("blocking latency", small["section"]);
  EXPECT_EQ("hmc", small["who"]);
  EXPECT_EQ(8, small["bytes"]);
  EXPECT_EQ("ns", small["unit"]);
  EXPECT_EQ(20, small["value"]);
  EXPECT_EQ(30, small["p999"]);
  EXPECT_EQ("memcpy", small["ceiling"]["name"]);
  EXPECT_EQ(10, small["percent_of_ceiling"]);
  EXPECT_TRUE(all["measurements"][2]["ceiling"].is_null());
  EXPECT_TRUE(all["measurements"][2]["p99"].is_null());
  EXPECT_EQ("GB/s", all["measurements"][4]["unit"]);
  EXPECT_EQ(true, all["targets"][0]["met"]);
  EXPECT_EQ("<= 1.05 x", all["targets"][1]["limit"]);
  EXPECT_EQ("verbs: no device", all["notes"][0]);
}

TEST(Json, isValidWhateverWasMeasured) {
  const auto all = nlohmann::json::parse(jsonText(brokenRun()));
  for (const auto& measurement : all["measurements"])
    EXPECT_TRUE(measurement["percent_of_ceiling"].is_null());
  const auto empty = nlohmann::json::parse(jsonText(bench::Run()));
  EXPECT_TRUE(empty["measurements"].is_array());
  EXPECT_TRUE(empty["header"].is_object());
}

}  // namespace
}  // namespace hmc::bench
