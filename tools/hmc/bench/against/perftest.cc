#include "bench/against/perftest.h"

#include <cmath>
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

// The numbers of the line below the one that begins with "#bytes". Remarks may stand in between.
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

bool isPositive(double value) {
  return value > 0 && std::isfinite(value);
}

Result<std::string> runOnce(const RdmaAddress& address, const PerftestRun& run) {
  TOOL_ASSIGN(const uint16_t tcpPort, freePort());
  std::vector<std::string> words{run.program};
  auto add = [&](const char* option, auto value) {
    words.insert(words.end(), {option, fmt::format("{}", value)});
  };
  add("-d", address.device);
  add("-i", address.port);
  add("-p", tcpPort);
  add("-s", run.bytes);
  add("-n", run.messages);
  words.emplace_back("-F");  // a processor that changes its speed is a remark, no error
  if (address.gidIndex) add("-x", *address.gidIndex);
  if (run.program != std::string(kWriteLatency)) add("-t", run.depth);
  const tool::Command server{words, {}};
  words.emplace_back("127.0.0.1");
  return tool::runServerAndClient(server, {words, {}}, run.timeout);
}

// On a busy host its two ends now and then wait for each other: a second try, on another port,
// works.
Result<std::string> runBothEnds(const RdmaAddress& address, const PerftestRun& run) {
  auto printed = runOnce(address, run);
  return printed.status().code() == Code::deadlineExceeded ? runOnce(address, run) : printed;
}

Status addSize(const RdmaAddress& address, size_t bytes, const Workload& workload,
               Comparison& found) {
  Measurement about{.who = "perftest",
                    .what = "RDMA write, half a ping-pong",
                    .path = address.device,
                    .bytes = bytes};
  PerftestRun run{.program = kWriteLatency, .bytes = bytes, .timeout = workload.timeout};
  TOOL_ASSIGN(const Percentiles times, perftestLatency(address, run));
  found.addLatency(about, times.p50, times);
  for (bool write : {true, false}) {
    run.program = write ? kWriteBandwidth : kReadBandwidth;
    about.what = write ? "RDMA write" : "RDMA read";
    TOOL_ASSIGN(const double each, perftestPerMessage(address, run));
    found.addBandwidth(about, each);
  }
  return Status();
}

}  // namespace

Status runVerbs(const Workload& workload, Progress& progress, Comparison& found) {
  TOOL_TRY(findPerftest());
  TOOL_ASSIGN(const RdmaAddress address, findRdmaAddress());
  progress.expect(workload.sizes.size());
  for (size_t bytes : workload.sizes) {
    progress.next(fmt::format("perftest, {}, {}", address.device, sizeText(bytes)));
    if (bytes == 0) continue;
    Status status = addSize(address, bytes, workload, found);
    if (!status.ok()) return status.within(sizeText(bytes));
  }
  return Status();
}

Status findPerftest() {
  for (const char* program : {kWriteBandwidth, kReadBandwidth, kWriteLatency})
    TOOL_TRY(tool::needProgram(program, "perftest"));
  return Status();
}

Result<double> perftestPerMessage(const RdmaAddress& address, const PerftestRun& run) {
  TOOL_ASSIGN(const std::string printed, runBothEnds(address, run));
  return parsePerMessage(printed);
}

Result<Percentiles> perftestLatency(const RdmaAddress& address, const PerftestRun& run) {
  TOOL_ASSIGN(const std::string printed, runBothEnds(address, run));
  return parseLatency(printed);
}

Result<double> parsePerMessage(const std::string& printed) {
  // bytes, messages, peak and mean of MB/s, million messages per second
  const auto numbers = numbersBelowHeading(printed);
  if (numbers.size() < 5) return tool::nothingMeasured("perftest", printed);
  constexpr double kMB = 1 << 20;  // what perftest calls so
  const double bySpeed = numbers[3] * kMB / numbers[0];
  const double byCount = numbers[4] * 1e6;
  // Speeds have two decimals, counts six: each is exact where the other is not.
  const double rate = numbers[3] / 1e-2 > numbers[4] / 1e-6 ? bySpeed : byCount;
  if (!isPositive(rate)) return tool::nothingMeasured("perftest", printed);
  return 1e9 / rate;
}

Result<Percentiles> parseLatency(const std::string& printed) {
  // bytes, rounds, least, most, typical, mean, deviation, 99 %, 99.9 %; in microseconds
  const auto numbers = numbersBelowHeading(printed);
  if (numbers.size() < 9 || !isPositive(numbers[4]))
    return tool::nothingMeasured("perftest", printed);
  return Percentiles{numbers[4] * 1000, numbers[7] * 1000, numbers[8] * 1000};
}

}  // namespace hmc::bench
