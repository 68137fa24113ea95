#include "bench/against/ucx.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <sstream>
#include <vector>

#include <fmt/core.h>

#include "bench/against/program.h"
#include "bench/against/rivals.h"
#include "bench/against/server_client.h"
#include "bench/report/units.h"

namespace hmc::bench {

namespace {

constexpr const char* kProgram = "ucx_perftest";

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

struct Path {
  const char* name;
  const char* transports;  // UCX_TLS
  size_t mostMessages;
  size_t mostBytes;
};
constexpr Path kPaths[] = {{"shm", "posix,self", 50000, size_t{512} << 20},
                           {"tcp", "tcp", 2000, size_t{128} << 20}};

struct Test {
  const char* name;
  const char* what;
  bool latency;
  bool bandwidth;
};
constexpr Test kTests[] = {{"ucp_put_bw", "put, streamed", true, true},
                           {"ucp_put_lat", "put, half a ping-pong", true, false},
                           {"ucp_get", "get", true, true}};

Result<UcxAnswer> runTest(const Path& path, const Test& test, size_t bytes,
                          std::chrono::milliseconds patience) {
  auto port = freePort();
  if (!port.ok()) return port.status();
  const std::string portText = std::to_string(*port);
  const size_t messages = std::clamp<size_t>(path.mostBytes / bytes, 5, path.mostMessages);
  // Warnings about settings that other programs made would be all that a failure shows.
  const std::vector<std::string> settings{std::string("UCX_TLS=") + path.transports,
                                          "UCX_WARN_UNUSED_ENV_VARS=n"};
  auto printed = runServerAndClient(
      {{kProgram, "-p", portText}, settings},
      {{kProgram, "127.0.0.1", "-p", portText, "-t", test.name, "-s", std::to_string(bytes), "-n",
        std::to_string(messages), "-w", std::to_string(messages / 10 + 1), "-f", "-v"},
       settings},
      patience);
  if (!printed.ok()) return printed.status();
  return parseUcx(*printed);
}

void add(const UcxAnswer& answer, const std::string& who, const Path& path, const Test& test,
         size_t bytes, Comparison& found) {
  Figure figure{.who = who, .what = test.what, .path = path.name, .bytes = bytes};
  if (test.latency) {
    figure.section = kLatencySection;
    figure.unit = Unit::nanoseconds;
    figure.value = answer.nanoseconds;
    found.figures.push_back(figure);
  }
  if (test.bandwidth) {
    figure.section = kBandwidthSection;
    figure.unit = Unit::gigabytesPerSecond;
    // Its own MB are 2^20 bytes, so the speed is counted from the messages.
    figure.value = answer.messagesPerSecond * static_cast<double>(bytes) / 1e9;
    found.figures.push_back(figure);
  }
}

void sweep(const Challenge& challenge, const Path& path, const Test& test, const std::string& who,
           Progress& progress, Comparison& found) {
  size_t left = challenge.sizes.size();
  for (size_t bytes : challenge.sizes) {
    progress.next(fmt::format("{} {}, {}, {}", who, test.what, path.name, sizeText(bytes)));
    --left;
    if (bytes == 0) continue;
    auto answer = runTest(path, test, bytes, challenge.patience);
    if (!answer.ok()) {
      found.notes.push_back(fmt::format("ucx: {} over {}, {}: {}", test.name, path.name,
                                        sizeText(bytes), answer.status().message()));
      progress.skip(left);
      return;  // larger sizes would not go better, and each could cost the whole patience
    }
    add(*answer, who, path, test, bytes, found);
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
    std::optional<double> rate;
    for (size_t i = 0; i < columns.size(); ++i) {
      if (isMedian(columns[i])) median = positive(parts[i]);
      if (columns[i] == "overall_mr") rate = positive(parts[i]);
    }
    if (median && rate) return UcxAnswer{*median * 1000, *rate};
  }
  return Status(Code::failed, fmt::format("{} printed no figures: {}", kProgram,
                                          printed.empty() ? "nothing" : printed.substr(0, 200)));
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

Status runUcx(const Challenge& challenge, Progress& progress, Comparison& found) {
  if (!findProgram(kProgram)) {
    return Status(Code::notFound,
                  fmt::format("{} is not installed: apt install ucx-utils", kProgram));
  }
  auto info = runProgram({{"ucx_info", "-v"}, {}}, challenge.patience);
  const std::string version = info.ok() ? parseUcxVersion(*info) : "";
  const std::string who = version.empty() ? "UCX" : "UCX " + version;
  const size_t before = found.figures.size();
  progress.expect(std::size(kPaths) * std::size(kTests) * challenge.sizes.size());
  for (const auto& path : kPaths) {
    for (const auto& test : kTests) sweep(challenge, path, test, who, progress, found);
  }
  if (found.figures.size() == before) return Status(Code::failed, "it gave no figures");
  found.notes.push_back(
      "UCX \"put, streamed\" is the time per message of ucp_put_bw, which does not wait until a "
      "put "
      "has arrived; \"put, half a ping-pong\" is ucp_put_lat, where both sides spin.");
  return Status();
}

}  // namespace hmc::bench
