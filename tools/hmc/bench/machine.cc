#include <sched.h>
#include <sys/utsname.h>

#include <chrono>
#include <ctime>
#include <fstream>

#include <fmt/chrono.h>
#include <fmt/core.h>

#include "bench/run.h"
#include "hmc/info.h"

namespace hmc::bench {

namespace {

// The value of the first line that begins with `key`, as in /proc/cpuinfo.
std::string valueIn(const char* file, const std::string& key) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    if (line.rfind(key, 0) != 0) continue;
    auto at = line.find(':');
    if (at == std::string::npos) continue;
    at = line.find_first_not_of(" \t", at + 1);
    return at == std::string::npos ? "" : line.substr(at);
  }
  return "";
}

std::string cores() {
  const size_t count = usableCores();
  return fmt::format("{} core{}", count, count == 1 ? "" : "s");
}

std::string processor() {
  std::string name = valueIn("/proc/cpuinfo", "model name");
  if (name.empty()) name = valueIn("/proc/cpuinfo", "Model");
  utsname system{};
  uname(&system);
  return name.empty() ? system.machine : name;
}

std::string load() {
  std::ifstream in("/proc/loadavg");
  std::string one;
  in >> one;
  return one.empty() ? "" : ", load " + one;
}

}  // namespace

size_t usableCores() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0) return 1;
  return static_cast<size_t>(CPU_COUNT(&allowed));
}

std::vector<std::pair<std::string, std::string>> describeMachine() {
  utsname system{};
  uname(&system);
  const auto build = buildReport();
  const auto now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  return {{"date", fmt::format("{:%Y-%m-%d %H:%M} UTC", fmt::gmtime(now))},
          {"machine", fmt::format("{}, {}{}", processor(), cores(), load())},
          {"system", fmt::format("{} {} {}", system.sysname, system.release, system.machine)},
          {"hmc", fmt::format("{}, {}, {}", build.version, build.type, build.compiler)}};
}

}  // namespace hmc::bench
