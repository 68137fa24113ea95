#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <span>
#include <sstream>
#include <vector>

#include <fmt/core.h>

#include "bench/against/competitors.h"
#include "bench/raw_socket.h"
#include "bench/report/units.h"
#include "program.h"
#include "try.h"

namespace hmc::bench {

namespace {

constexpr const char* kUcxPerftest = "ucx_perftest";

std::vector<std::string> split(const std::string& line, char mark) {
  std::vector<std::string> parts;
  std::istringstream stream(line);
  for (std::string part; std::getline(stream, part, mark);) parts.push_back(part);
  return parts;
}

std::optional<double> positive(const std::string& text) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (end == text.c_str() || !(value > 0) || !std::isfinite(value)) return std::nullopt;
  return value;
}

// The median is called after its rank or "typical", by version.
bool isMedian(const std::string& column) {
  return column.find("percentile_lat") != std::string::npos || column == "typical_lat";
}

struct UcxTest {
  const char* name;
  const char* what;
  bool latency;
  bool bandwidth;
};

constexpr UcxTest kShmTests[] = {{"ucp_put_bw", "put, streamed", true, true},
                                 {"ucp_put_lat", "put, half a ping-pong", true, false},
                                 {"ucp_get", "get", true, true}};
// Over tcp the target's software takes part, and in the streamed one-sided tests it polls once in a
// millisecond: those would measure ucx_perftest, not UCX.
constexpr UcxTest kTcpTests[] = {{"ucp_put_lat", "put, half a ping-pong", true, false},
                                 {"tag_bw", "send, streamed", false, true}};

struct UcxPath {
  const char* name;
  const char* transports;  // UCX_TLS
  size_t mostMessages;
  size_t mostBytes;
  std::span<const UcxTest> tests;
};
constexpr UcxPath kUcxPaths[] = {{"shm", "posix,self", 20000, size_t{512} << 20, kShmTests},
                                 {"tcp", "tcp", 1000, size_t{128} << 20, kTcpTests}};

Result<UcxAnswer> runTest(const UcxPath& path, const UcxTest& test, size_t bytes,
                          std::chrono::milliseconds timeout) {
  TOOL_ASSIGN(const uint16_t port, freePort());
  const std::string portText = std::to_string(port);
  const size_t messages = std::clamp<size_t>(path.mostBytes / bytes, 5, path.mostMessages);
  // Otherwise warnings about other programs' settings hide the reason of a failure.
  const std::vector<std::string> settings{std::string("UCX_TLS=") + path.transports,
                                          "UCX_WARN_UNUSED_ENV_VARS=n"};
  TOOL_ASSIGN(
      const std::string printed,
      tool::runServerAndClient(
          {{kUcxPerftest, "-p", portText}, settings},
          {{kUcxPerftest, "127.0.0.1", "-p", portText, "-t", test.name, "-s", std::to_string(bytes),
            "-n", std::to_string(messages), "-w", std::to_string(messages / 10 + 1), "-f", "-v"},
           settings},
          timeout));
  return parseUcx(printed);
}

void sweep(const Workload& workload, const UcxPath& path, const UcxTest& test,
           const std::string& who, Progress& progress, Comparison& found) {
  size_t left = workload.sizes.size();
  for (size_t bytes : workload.sizes) {
    progress.next(fmt::format("{} {}, {}, {}", who, test.what, path.name, sizeText(bytes)));
    --left;
    if (bytes == 0) continue;
    auto answer = runTest(path, test, bytes, workload.timeout);
    if (!answer.ok()) {
      found.notes.push_back(fmt::format("ucx: {} over {}, {}: {}", test.name, path.name,
                                        sizeText(bytes), answer.status().message()));
      progress.skip(left);
      return;  // larger sizes would fail as well, each after the whole timeout
    }
    const Measurement about{.who = who, .what = test.what, .path = path.name, .bytes = bytes};
    if (test.latency) found.addLatency(about, answer->median);
    // Its own MB/s are 2^20 bytes, so the speed is counted from the time.
    if (test.bandwidth) found.addBandwidth(about, answer->mean);
  }
}

}  // namespace

Result<UcxAnswer> parseUcx(const std::string& printed) {
  std::vector<std::string> columns;
  for (const auto& line : split(printed, '\n')) {
    auto parts = split(line, ',');
    if (!parts.empty() && parts[0] == "iterations") {
      columns = parts;
      continue;
    }
    if (columns.empty() || parts.size() != columns.size()) continue;
    std::optional<double> median;
    std::optional<double> mean;
    std::optional<double> rate;
    for (size_t i = 0; i < columns.size(); ++i) {
      if (isMedian(columns[i])) median = positive(parts[i]);
      if (columns[i] == "overall_lat") mean = positive(parts[i]);
      if (columns[i] == "overall_mr") rate = positive(parts[i]);
    }
    // Times have three decimals of a microsecond, rates none: each is exact where the other is not.
    if (rate && *rate > 1e5) mean = 1e6 / *rate;
    if (median && mean) return UcxAnswer{*median * 1000, *mean * 1000};
  }
  return tool::nothingMeasured(kUcxPerftest, printed);
}

Result<double> ucxTcpSend(size_t bytes, std::chrono::milliseconds timeout) {
  TOOL_TRY(tool::needProgram(kUcxPerftest, "ucx-utils"));
  const UcxPath& tcp = kUcxPaths[1];
  TOOL_ASSIGN(const UcxAnswer answer, runTest(tcp, tcp.tests.back(), bytes, timeout));
  return answer.mean;
}

std::string parseUcxVersion(const std::string& printed) {
  for (const auto& line : split(printed, '\n')) {
    if (line.find("ersion") == std::string::npos) continue;
    for (const auto& word : split(line, ' ')) {
      if (!word.empty() && word[0] >= '0' && word[0] <= '9') return word;
    }
  }
  return "";
}

Status runUcx(const Workload& workload, Progress& progress, Comparison& found) {
  TOOL_TRY(tool::needProgram(kUcxPerftest, "ucx-utils"));
  auto info = tool::runProgram({{"ucx_info", "-v"}, {}}, workload.timeout);
  const std::string version = info.ok() ? parseUcxVersion(*info) : "";
  const std::string who = version.empty() ? "UCX" : "UCX " + version;
  const size_t before = found.measurements.size();
  for (const auto& path : kUcxPaths) progress.expect(path.tests.size() * workload.sizes.size());
  for (const auto& path : kUcxPaths) {
    for (const auto& test : path.tests) sweep(workload, path, test, who, progress, found);
  }
  if (found.measurements.size() == before)
    return Status(Code::failed, "it printed no measurements");
  found.notes.push_back(
      "UCX: \"put, streamed\" is the time per message of ucp_put_bw, \"half a ping-pong\" is "
      "ucp_put_lat with both sides spinning, \"send, streamed\" is tag_bw.");
  return Status();
}

}  // namespace hmc::bench
