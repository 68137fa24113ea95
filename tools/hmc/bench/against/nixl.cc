#include <cmath>
#include <sstream>

#include <fmt/core.h>

#include "bench/against/competitors.h"
#include "program.h"
#include "try.h"

namespace hmc::bench {

namespace {

constexpr const char* kPython = "python3";
constexpr const char* kAskVersion =
    "import nixl._api; from importlib.metadata import version; print(version('nixl'))";

// The version of the package, or how to install it.
Result<std::string> nixlVersion(std::chrono::milliseconds timeout) {
  TOOL_TRY(tool::needProgram(kPython, kPython));
  auto printed = tool::runProgram({{kPython, "-c", kAskVersion}, {}}, timeout);
  if (printed.ok()) return printed->substr(0, printed->find('\n'));
  const std::string& why = printed.status().message();
  if (why.find("No module named 'nixl") == std::string::npos) return printed.status();
  return Status(
      Code::notFound,
      fmt::format("the Python package nixl is not installed: {} -m pip install nixl", kPython));
}

bool isReachable(const Device& device) {
  return device.isHost() || device.kind == DeviceKind::cuda;
}

std::string placeOf(const Device& device) {
  return device.isHost() ? "cpu" : device.toString();
}

}  // namespace

Comparison parseNixl(const std::string& printed, const std::string& who) {
  Comparison found;
  std::istringstream lines(printed);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string operation;
    std::string mode;
    size_t bytes = 0;
    double each = 0;
    if (!(words >> operation >> mode >> bytes >> each)) continue;
    if (bytes == 0 || !(each > 0) || !std::isfinite(each)) continue;
    const Measurement about{
        .who = who, .what = "Python " + operation, .path = "UCX", .bytes = bytes};
    if (mode == "one") found.addLatency(about, each);
    if (mode == "many") found.addBandwidth(about, each);
  }
  return found;
}

Status runNixl(const Workload& workload, Progress& progress, Comparison& found) {
  for (const Device& device : {workload.here, workload.there}) {
    if (!isReachable(device)) {
      return Status(Code::unsupported, fmt::format("not measured: our script for it knows host "
                                                   "memory and CUDA, not {}",
                                                   device.toString()));
    }
  }
  TOOL_ASSIGN(const std::string version, nixlVersion(workload.timeout));
  TOOL_ASSIGN(const std::string script, tool::findOwnFile("share/hmc/nixl_agents.py"));
  progress.expect(1);
  progress.next("NIXL, all sizes");
  std::vector<std::string> words{kPython, script, placeOf(workload.here), placeOf(workload.there)};
  size_t runs = 1;
  for (size_t bytes : workload.sizes) {
    if (bytes == 0) continue;
    words.push_back(std::to_string(bytes));
    ++runs;
  }
  TOOL_ASSIGN(const std::string printed,
              tool::runProgram({words, {}}, workload.timeout * static_cast<int>(runs)));
  const auto measured = parseNixl(printed, "NIXL " + version).measurements;
  if (measured.empty()) return tool::nothingMeasured("nixl_agents.py", printed);
  found.measurements.insert(found.measurements.end(), measured.begin(), measured.end());
  return Status();
}

}  // namespace hmc::bench
