#include "hmc/info.h"

#include <dlfcn.h>

#include <climits>
#include <cstdlib>

#include <fmt/core.h>

#include "base/environment.h"
#include "hmc/figures.h"
#include "hmc/version.h"
#include "memory/backends.h"

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
  return {kind, facts.deviceCount, facts.name};
}

std::string standardOf(const Variable& variable) {
  // What it is depends on the user.
  if (&variable == &variable::kFigures && !figuresPath().empty()) return figuresPath();
  return variable.standard;
}

}  // namespace

BuildReport buildReport() {
  return {kVersion, compiler(), HMC_BUILD_TYPE, libraryPath()};
}

std::vector<MemoryReport> memoryReport() {
  std::vector<MemoryReport> report;
  for (int i = 0; i <= static_cast<int>(DeviceKind::musa); ++i)
    report.push_back(reportOf(static_cast<DeviceKind>(i)));
  return report;
}

std::vector<SettingReport> settingsReport() {
  std::vector<SettingReport> report;
  for (const Variable* variable : kVariables) {
    auto value = valueOf(*variable);
    SettingReport line{variable->name, variable->meaning, value.value_or(standardOf(*variable)),
                       value.has_value(), checkValue(*variable).message()};
    if (value && variable->form == Variable::Form::secret) {
      line.value = fmt::format("({} bytes, not shown)", value->size());
    }
    report.push_back(std::move(line));
  }
  return report;
}

RdmaReport rdmaReport() {
  RdmaReport report;
  report.problem = "this build of the library has no RDMA transport";
  report.fix = "apt install libibverbs-dev, then build again";
  return report;
}

}  // namespace hmc
