#include "bench/report/csv.h"

#include <array>
#include <cmath>
#include <map>

#include <fmt/core.h>

#include "bench/report/units.h"

namespace hmc::bench {

namespace {

constexpr std::array kColumns{
    "record", "name",    "section", "who",   "what",    "path",          "bytes",
    "unit",   "value",   "p99",     "p999",  "ceiling", "ceiling_value", "percent_of_ceiling",
    "text",   "against", "ratio",   "limit", "met"};

using Record = std::map<std::string, std::string>;

std::string quoted(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string out = "\"";
  for (char c : text) {
    if (c == '"') out += '"';
    out += c;
  }
  return out + "\"";
}

std::string csvNumber(double value) {
  return std::isfinite(value) ? fmt::format("{}", value) : "";
}

std::string line(const Record& record) {
  std::string out;
  for (const char* column : kColumns) {
    if (!out.empty()) out += ',';
    auto found = record.find(column);
    if (found != record.end()) out += quoted(found->second);
  }
  return out + "\n";
}

Record recordOf(const Measurement& measurement) {
  Record record{{"record", "measurement"},
                {"section", measurement.section},
                {"who", measurement.who},
                {"what", measurement.what},
                {"path", measurement.path},
                {"bytes", std::to_string(measurement.bytes)},
                {"unit", unitName(measurement.unit)},
                {"value", csvNumber(measurement.value)}};
  if (measurement.spread) {
    record["p99"] = csvNumber(measurement.spread->p99);
    record["p999"] = csvNumber(measurement.spread->p999);
  }
  if (measurement.ceiling) {
    record["ceiling"] = measurement.ceiling->name;
    record["ceiling_value"] = csvNumber(measurement.ceiling->value);
  }
  if (auto percent = percentOfCeiling(measurement))
    record["percent_of_ceiling"] = csvNumber(*percent);
  return record;
}

}  // namespace

std::string csvText(const Run& run) {
  std::string out;
  for (const char* column : kColumns) {
    if (!out.empty()) out += ',';
    out += column;
  }
  out += "\n";
  for (const auto& [name, value] : run.header) {
    out += line({{"record", "header"}, {"name", name}, {"text", value}});
  }
  for (const auto& measurement : run.measurements) out += line(recordOf(measurement));
  for (const auto& target : run.targets) {
    out += line({{"record", "target"},
                 {"what", target.what},
                 {"text", target.measured},
                 {"against", target.against},
                 {"ratio", csvNumber(target.ratio)},
                 {"limit", target.limit},
                 {"met", target.met ? "true" : "false"}});
  }
  for (const auto& note : run.notes) out += line({{"record", "note"}, {"text", note}});
  return out;
}

}  // namespace hmc::bench
