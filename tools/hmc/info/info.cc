#include "info/info.h"

#include <algorithm>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "info/origin.h"
#include "peer_options.h"

namespace hmc::tool {

namespace {

using Json = nlohmann::ordered_json;

std::string plural(int count, const char* what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

std::string text(const SettingReport& setting, size_t width) {
  std::string line =
      fmt::format("  {:<22} {:<{}}  {:<11}  {}\n", setting.variable, setting.value, width,
                  setting.fromEnvironment ? "environment" : "default", setting.meaning);
  if (!setting.problem.empty()) line += fmt::format("  {:<22} WRONG: {}\n", "", setting.problem);
  return line;
}

}  // namespace

Info collectInfo() {
  Info info{buildReport(),    installedFrom(), memoryReport(), {}, "",
            settingsReport(), securityReport()};
  auto node = Node::create(optionsFromEnvironment("hmc info"));
  if (node.ok()) {
    info.transports = node->transports();
  } else {
    info.transportProblem = node.status().message();
  }
  return info;
}

std::string toText(const Info& info) {
  std::string out = "Build\n";
  for (const auto& [name, value] :
       {std::pair<const char*, std::string>{"version", info.build.version},
        {"compiler", info.build.compiler},
        {"type", info.build.type},
        {"library", info.build.library},
        {"installed", info.installed}}) {
    out += fmt::format("  {:<10} {}\n", name, value);
  }
  out += "\nMemory\n";
  for (const auto& one : info.memory) {
    out += fmt::format("  {:<10} {:<10} {}\n", deviceKindName(one.kind),
                       one.devices > 0 ? plural(one.devices, "device") : "none", one.detail);
  }
  out += "\nTransports, best first\n";
  for (const auto& one : info.transports) {
    out += fmt::format("  {:<10} {:<10} {}\n", one.transport, one.usable ? "usable" : "not here",
                       one.reason);
  }
  if (!info.transportProblem.empty()) out += fmt::format("  none: {}\n", info.transportProblem);
  out += "\nLet in, where a Node names no secret\n";
  out += fmt::format("  {:<10} {}\n", "this host", info.security.host);
  out += fmt::format("  {:<10} {}\n", "network", info.security.network);
  if (!info.security.problem.empty())
    out += fmt::format("  {:<10} WRONG: {}\n", "", info.security.problem);
  out += "\nSettings\n";
  size_t width = 0;
  for (const auto& one : info.settings) width = std::max(width, one.value.size());
  for (const auto& one : info.settings) out += text(one, std::min(width, size_t{40}));
  return out;
}

std::string toJson(const Info& info) {
  Json json;
  json["build"] = {{"version", info.build.version},
                   {"compiler", info.build.compiler},
                   {"type", info.build.type},
                   {"library", info.build.library},
                   {"installed", info.installed}};
  json["memory"] = Json::array();
  for (const auto& one : info.memory) {
    json["memory"].push_back(
        {{"kind", deviceKindName(one.kind)}, {"devices", one.devices}, {"detail", one.detail}});
  }
  json["transports"] = Json::array();
  for (const auto& one : info.transports) {
    json["transports"].push_back(
        {{"transport", one.transport}, {"usable", one.usable}, {"reason", one.reason}});
  }
  if (!info.transportProblem.empty()) json["transportProblem"] = info.transportProblem;
  json["settings"] = Json::array();
  for (const auto& one : info.settings) {
    Json setting{{"variable", one.variable},
                 {"value", one.value},
                 {"from", one.fromEnvironment ? "environment" : "default"},
                 {"meaning", one.meaning},
                 {"readBy", one.readBy}};
    if (!one.problem.empty()) setting["problem"] = one.problem;
    json["settings"].push_back(setting);
  }
  json["security"] = {{"host", info.security.host},
                      {"network", info.security.network},
                      {"open", info.security.open}};
  if (!info.security.problem.empty()) json["security"]["problem"] = info.security.problem;
  return json.dump(2, ' ', false, Json::error_handler_t::replace);
}

}  // namespace hmc::tool
