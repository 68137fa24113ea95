#include <cmath>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "bench/report/report.h"
#include "bench/report/units.h"

// JSON, and CSV made from the same objects.
namespace hmc::bench {

namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kColumns[] = {
    "record", "name",    "section", "who",   "what",    "path",          "bytes",
    "unit",   "value",   "p99",     "p999",  "ceiling", "ceiling_value", "percent_of_ceiling",
    "text",   "against", "ratio",   "limit", "met"};

Json numberOrNull(double value) {
  return std::isfinite(value) ? Json(value) : Json(nullptr);
}

Json jsonOf(const Measurement& one) {
  const auto percent = percentOfCeiling(one);
  Json ceiling;
  if (one.ceiling)
    ceiling = {{"name", one.ceiling->name}, {"value", numberOrNull(one.ceiling->value)}};
  return {{"section", one.section},
          {"who", one.who},
          {"what", one.what},
          {"path", one.path},
          {"bytes", one.bytes},
          {"unit", unitName(one.unit)},
          {"value", numberOrNull(one.value)},
          {"p99", one.spread ? numberOrNull(one.spread->p99) : Json()},
          {"p999", one.spread ? numberOrNull(one.spread->p999) : Json()},
          {"ceiling", ceiling},
          {"percent_of_ceiling", percent ? numberOrNull(*percent) : Json()}};
}

Json jsonOf(const Target& target) {
  return {{"what", target.what},       {"measured", target.measured},
          {"against", target.against}, {"ratio", numberOrNull(target.ratio)},
          {"limit", target.limit},     {"met", target.met}};
}

Json jsonOf(const PathRow& row) {
  Json times = Json::object();
  for (const auto& [transport, ns] : row.times) times[transport] = numberOrNull(ns);
  return {{"what", row.what},
          {"bytes", row.bytes},
          {"times", times},
          {"taken", row.taken},
          {"quickest", quickestOf(row).transport},
          {"factor", numberOrNull(quickestOf(row).factor)},
          {"well_chosen", isWellChosen(row)}};
}

template <class T>
Json listOf(const std::vector<T>& all) {
  Json list = Json::array();
  for (const T& one : all) list.push_back(jsonOf(one));
  return list;
}

std::string cellOf(const Json& value) {
  if (value.is_null()) return "";
  if (value.is_number_float()) return fmt::format("{}", value.get<double>());
  if (!value.is_string()) return value.dump();
  const auto text = value.get<std::string>();
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (char c : text) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + "\"";
}

std::string lineOf(const Json& record) {
  std::string out;
  for (const char* column : kColumns) {
    if (!out.empty()) out += ',';
    out += cellOf(record.value(column, Json()));
  }
  return out + "\n";
}

}  // namespace

std::string jsonText(const Run& run) {
  Json out;
  out["header"] = Json::object();
  for (const auto& [name, value] : run.header) out["header"][name] = value;
  out["measurements"] = listOf(run.measurements);
  out["targets"] = listOf(run.targets);
  out["paths"] = listOf(run.paths);
  out["notes"] = run.notes;
  // A machine's name need not be UTF-8; that is no reason to lose the measurements.
  return out.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string csvText(const Run& run) {
  Json heading;
  for (const char* column : kColumns) heading[column] = column;
  std::string out = lineOf(heading);
  for (const auto& [name, value] : run.header)
    out += lineOf({{"record", "header"}, {"name", name}, {"text", value}});
  for (Json record : listOf(run.measurements)) {
    record["record"] = "measurement";
    if (const Json ceiling = record["ceiling"]; !ceiling.is_null()) {
      record["ceiling"] = ceiling["name"];
      record["ceiling_value"] = ceiling["value"];
    }
    out += lineOf(record);
  }
  for (Json record : listOf(run.targets)) {
    record["record"] = "target";
    record["text"] = record["measured"];
    out += lineOf(record);
  }
  for (const auto& note : run.notes) out += lineOf({{"record", "note"}, {"text", note}});
  return out;
}

}  // namespace hmc::bench
