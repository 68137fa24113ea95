#include <unistd.h>

#include <algorithm>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "doctor/checks.h"
#include "hmc/version.h"
#include "program.h"

namespace hmc::tool {

namespace {

const char* nameOf(Level level) {
  constexpr const char* kNames[] = {"ok", "warn", "fail"};
  return kNames[static_cast<size_t>(level)];
}

}  // namespace

bool healthy(const std::vector<Finding>& findings) {
  return std::none_of(findings.begin(), findings.end(),
                      [](const Finding& one) { return one.level == Level::fail; });
}

Privilege privilegeOfThisUser() {
  if (geteuid() == 0) return Privilege::root;
  return findProgram("sudo") ? Privilege::sudo : Privilege::none;
}

Finding forUser(Finding finding, Privilege privilege) {
  if (privilege == Privilege::sudo) return finding;
  constexpr std::string_view kSudo = "sudo ";
  bool removed = false;
  for (size_t at = 0; (at = finding.fix.find(kSudo, at)) != std::string::npos; removed = true) {
    finding.fix.erase(at, kSudo.size());
  }
  if (removed && privilege == Privilege::none) finding.fix = "as root: " + finding.fix;
  return finding;
}

std::string toText(const Finding& finding) {
  std::string text =
      fmt::format("{:<5} {:<18} {}\n", nameOf(finding.level), finding.what, finding.detail);
  if (!finding.fix.empty()) text += fmt::format("{:<5} {:<18} fix: {}\n", "", "", finding.fix);
  return text;
}

std::string toJson(const std::vector<Finding>& findings) {
  // Ordered, so that the fields come out as they are documented.
  nlohmann::ordered_json report;
  report["version"] = kVersion;
  report["healthy"] = healthy(findings);
  report["findings"] = nlohmann::ordered_json::array();
  for (const auto& finding : findings) {
    report["findings"].push_back({{"level", nameOf(finding.level)},
                                  {"what", finding.what},
                                  {"detail", finding.detail},
                                  {"fix", finding.fix}});
  }
  // Names of hosts and peers need not be UTF-8.
  return report.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace hmc::tool
