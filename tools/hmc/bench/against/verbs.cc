#include "bench/against/verbs.h"

#include <cmath>
#include <filesystem>
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

constexpr const char* kBandwidth = "ib_write_bw";
constexpr const char* kLatency = "ib_write_lat";

// The numbers of the line below the one that begins with "#bytes".
std::vector<double> numbersBelowHeading(const std::string& printed) {
  std::istringstream lines(printed);
  bool below = false;
  for (std::string line; std::getline(lines, line);) {
    if (line.find("#bytes") != std::string::npos) {
      below = true;
      continue;
    }
    if (!below) continue;
    std::istringstream words(line);
    std::vector<double> numbers;
    for (double number = 0; words >> number;) numbers.push_back(number);
    if (!numbers.empty()) return numbers;
  }
  return {};
}

std::optional<std::string> firstDevice() {
  std::error_code none;
  std::filesystem::directory_iterator devices("/sys/class/infiniband", none);
  if (none || devices == std::filesystem::directory_iterator()) return std::nullopt;
  return devices->path().filename().string();
}

Result<std::string> runTest(const std::string& program, const std::string& device, size_t bytes,
                            std::chrono::milliseconds patience) {
  auto port = freePort();
  if (!port.ok()) return port.status();
  std::vector<std::string> words{
      program, "-d",   device, "-p", std::to_string(*port), "-s", std::to_string(bytes),
      "-n",    "1000", "-F"};
  if (program == kBandwidth) words.emplace_back("--report_gbits");
  Command server{words, {}};
  words.emplace_back("127.0.0.1");
  return runServerAndClient(server, {words, {}}, patience);
}

Status addSize(const std::string& device, size_t bytes, const Challenge& challenge,
               Comparison& found) {
  Figure figure{.who = "perftest", .what = "RDMA write", .path = device, .bytes = bytes};
  auto printed = runTest(kLatency, device, bytes, challenge.patience);
  if (!printed.ok()) return printed.status();
  auto times = parseWriteLatency(*printed);
  if (!times.ok()) return times.status();
  figure.section = kLatencySection;
  figure.value = times->p50;
  figure.spread = *times;
  found.figures.push_back(figure);
  printed = runTest(kBandwidth, device, bytes, challenge.patience);
  if (!printed.ok()) return printed.status();
  auto speed = parseWriteBandwidth(*printed);
  if (!speed.ok()) return speed.status();
  figure.section = kBandwidthSection;
  figure.unit = Unit::gigabytesPerSecond;
  figure.value = *speed;
  figure.spread.reset();
  found.figures.push_back(figure);
  return Status();
}

}  // namespace

Result<double> parseWriteBandwidth(const std::string& printed) {
  auto numbers = numbersBelowHeading(printed);  // bytes, rounds, peak, average, message rate
  if (numbers.size() < 4 || !(numbers[3] > 0) || !std::isfinite(numbers[3])) {
    return Status(Code::failed, fmt::format("{} printed no figures", kBandwidth));
  }
  return numbers[3] / 8;
}

Result<Percentiles> parseWriteLatency(const std::string& printed) {
  // bytes, rounds, least, most, typical, mean, deviation, 99 %, 99.9 %; in microseconds
  auto numbers = numbersBelowHeading(printed);
  if (numbers.size() < 9 || !(numbers[4] > 0) || !std::isfinite(numbers[4])) {
    return Status(Code::failed, fmt::format("{} printed no figures", kLatency));
  }
  return Percentiles{numbers[4] * 1000, numbers[7] * 1000, numbers[8] * 1000};
}

Status runVerbs(const Challenge& challenge, Progress& progress, Comparison& found) {
  for (const char* program : {kBandwidth, kLatency}) {
    if (findProgram(program)) continue;
    return Status(Code::notFound,
                  fmt::format("{} is not installed: apt install perftest", program));
  }
  auto device = firstDevice();
  if (!device) {
    return Status(Code::notFound,
                  "this machine has no RDMA device: /sys/class/infiniband is empty or missing");
  }
  progress.expect(challenge.sizes.size());
  for (size_t bytes : challenge.sizes) {
    progress.next(fmt::format("RDMA write, {}, {}", *device, sizeText(bytes)));
    if (bytes == 0) continue;
    Status status = addSize(*device, bytes, challenge, found);
    if (!status.ok()) return status.within(sizeText(bytes));
  }
  return Status();
}

}  // namespace hmc::bench
