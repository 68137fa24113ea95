#include "bench/report/json.h"

#include <cmath>

#include <nlohmann/json.hpp>

#include "bench/report/units.h"

namespace hmc::bench {

namespace {

using Json = nlohmann::ordered_json;

Json jsonNumber(double value) {
  return std::isfinite(value) ? Json(value) : Json(nullptr);
}

Json jsonOf(const Measurement& measurement) {
  Json out;
  out["section"] = measurement.section;
  out["who"] = measurement.who;
  out["what"] = measurement.what;
  out["path"] = measurement.path;
  out["bytes"] = measurement.bytes;
  out["unit"] = unitName(measurement.unit);
  out["value"] = jsonNumber(measurement.value);
  out["p99"] = measurement.spread ? jsonNumber(measurement.spread->p99) : Json(nullptr);
  out["p999"] = measurement.spread ? jsonNumber(measurement.spread->p999) : Json(nullptr);
  out["ceiling"] = nullptr;
  if (measurement.ceiling) {
    out["ceiling"] = {{"name", measurement.ceiling->name},
                      {"value", jsonNumber(measurement.ceiling->value)}};
  }
  const auto percent = percentOfCeiling(measurement);
  out["percent_of_ceiling"] = percent ? jsonNumber(*percent) : Json(nullptr);
  return out;
}

Json jsonOf(const Target& target) {
  Json out;
  out["what"] = target.what;
  out["measured"] = target.measured;
  out["against"] = target.against;
  out["ratio"] = jsonNumber(target.ratio);
  out["limit"] = target.limit;
  out["met"] = target.met;
  return out;
}

Json jsonOf(const PathRow& row) {
  Json out;
  out["what"] = row.what;
  out["bytes"] = row.bytes;
  out["times"] = Json::object();
  for (const auto& [transport, ns] : row.times) out["times"][transport] = jsonNumber(ns);
  out["taken"] = row.taken;
  out["quickest"] = quickestOf(row).transport;
  out["factor"] = jsonNumber(quickestOf(row).factor);
  out["well_chosen"] = isWellChosen(row);
  return out;
}

}  // namespace

std::string jsonText(const Run& run) {
  Json out;
  out["header"] = Json::object();
  for (const auto& [name, value] : run.header) out["header"][name] = value;
  out["measurements"] = Json::array();
  for (const auto& measurement : run.measurements)
    out["measurements"].push_back(jsonOf(measurement));
  out["targets"] = Json::array();
  for (const auto& target : run.targets) out["targets"].push_back(jsonOf(target));
  out["paths"] = Json::array();
  for (const auto& row : run.paths) out["paths"].push_back(jsonOf(row));
  out["notes"] = run.notes;
  // A machine's name need not be UTF-8; that is no reason to lose the measurements.
  return out.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace hmc::bench
