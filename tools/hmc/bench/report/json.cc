#include "bench/report/json.h"

#include <cmath>

#include <nlohmann/json.hpp>

#include "bench/report/units.h"

namespace hmc::bench {

namespace {

using Json = nlohmann::ordered_json;

Json number(double value) {
  return std::isfinite(value) ? Json(value) : Json(nullptr);
}

Json jsonOf(const Figure& figure) {
  Json out;
  out["section"] = figure.section;
  out["who"] = figure.who;
  out["what"] = figure.what;
  out["path"] = figure.path;
  out["bytes"] = figure.bytes;
  out["unit"] = unitName(figure.unit);
  out["value"] = number(figure.value);
  out["p99"] = figure.spread ? number(figure.spread->p99) : Json(nullptr);
  out["p999"] = figure.spread ? number(figure.spread->p999) : Json(nullptr);
  out["ceiling"] = nullptr;
  if (figure.ceiling) {
    out["ceiling"] = {{"name", figure.ceiling->name}, {"value", number(figure.ceiling->value)}};
  }
  const auto percent = percentOfCeiling(figure);
  out["percent_of_ceiling"] = percent ? number(*percent) : Json(nullptr);
  return out;
}

Json jsonOf(const Bar& bar) {
  Json out;
  out["what"] = bar.what;
  out["measured"] = bar.measured;
  out["against"] = bar.against;
  out["ratio"] = number(bar.ratio);
  out["limit"] = bar.limit;
  out["met"] = bar.met;
  return out;
}

Json jsonOf(const PathRow& row) {
  Json out;
  out["what"] = row.what;
  out["bytes"] = row.bytes;
  out["times"] = Json::object();
  for (const auto& [transport, ns] : row.times) out["times"][transport] = number(ns);
  out["taken"] = row.taken;
  out["quickest"] = quickestOf(row).transport;
  out["factor"] = number(quickestOf(row).factor);
  out["well_chosen"] = isWellChosen(row);
  return out;
}

}  // namespace

std::string jsonText(const Run& run) {
  Json out;
  out["header"] = Json::object();
  for (const auto& [name, value] : run.header) out["header"][name] = value;
  out["figures"] = Json::array();
  for (const auto& figure : run.figures) out["figures"].push_back(jsonOf(figure));
  out["bars"] = Json::array();
  for (const auto& bar : run.bars) out["bars"].push_back(jsonOf(bar));
  out["paths"] = Json::array();
  for (const auto& row : run.paths) out["paths"].push_back(jsonOf(row));
  out["notes"] = run.notes;
  // A machine's name need not be UTF-8; that is no reason to lose the figures.
  return out.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace hmc::bench
