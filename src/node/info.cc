#include "hmc/info.h"

#include <dlfcn.h>

#include <climits>
#include <cstdlib>

#include <fmt/core.h>

#include "base/cookie.h"
#include "base/environment.h"
#include "hmc/version.h"
#include "memory/backends.h"
#include "transport/mapping_report.h"
#include "transport/rdma_report.h"

namespace hmc {

namespace {

std::string compiler() {
#if defined(__clang__)
  return std::string("clang ") + __clang_version__;
#else
  return std::string("gcc ") + __VERSION__;
#endif
}

std::string libraryPath() {
  Dl_info found{};
  if (dladdr(reinterpret_cast<const void*>(&buildReport), &found) == 0 || !found.dli_fname)
    return "unknown";
  char* whole = realpath(found.dli_fname, nullptr);
  std::string path = whole ? whole : found.dli_fname;
  std::free(whole);
  return path;
}

MemoryReport reportOf(DeviceKind kind) {
  auto backend = findBackend(kind);
  if (!backend.ok()) return {kind, 0, backend.status().message()};
  const auto& facts = (*backend)->facts();
  return {kind, facts.deviceCount(), facts.name};
}

}  // namespace

BuildReport buildReport() {
  return {kVersion, compiler(), HMC_BUILD_TYPE, libraryPath()};
}

std::vector<MemoryReport> memoryReport() {
  std::vector<MemoryReport> report;
  for (DeviceKind kind : kDeviceKinds) report.push_back(reportOf(kind));
  return report;
}

std::vector<SettingReport> settingsReport() {
  std::vector<SettingReport> report;
  for (const Variable* variable : kVariables) {
    auto value = valueOf(*variable);
    SettingReport line{variable->name,
                       variable->meaning,
                       value.value_or(variable->standard),
                       value.has_value(),
                       checkValue(*variable).message(),
                       readerName(variable->reader)};
    if (value && variable->form == Variable::Form::secret) {
      line.value = fmt::format("({} bytes, not shown)", value->size());
    }
    report.push_back(std::move(line));
  }
  return report;
}

SecurityReport securityReport() {
  SecurityReport report;
  const std::string secret = valueOf(variable::kSecret).value_or("");
  if (!secret.empty()) {
    report.host = report.network = fmt::format("who knows {}", variable::kSecret.name);
    return report;
  }
  const auto cookie = userCookie();
  if (!cookie.ok()) report.problem = cookie.status().message();
  report.open = cookie.ok() && cookie->empty();
  report.host = report.open
                    ? fmt::format("every user of this host ({}=none)", variable::kCookie.name)
                    : fmt::format("processes of this user (cookie {})", cookiePath());
  const bool strict = valueOf(variable::kSecurity) == "strict";
  report.network = strict ? fmt::format("nobody ({}=strict)", variable::kSecurity.name)
                          : fmt::format(
                                "nobody: set {}; the documented classes and insecure=true let "
                                "everybody in, with a warning",
                                variable::kSecret.name);
  return report;
}

Status mappedMemoryReport() {
  return ipc::mappingReport();
}

RdmaReport rdmaReport() {
  const verbs::Report found = verbs::report();
  RdmaReport report{found.library, found.problem, found.fix, {}, {}};
  for (const auto& port : found.ports) {
    report.ports.push_back(
        {port.device, port.port, port.usable, port.detail, port.problem, port.fix});
  }
  for (const auto& way : found.memory) report.memory.push_back({way.device, way.how});
  return report;
}

}  // namespace hmc
