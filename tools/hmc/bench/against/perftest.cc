#include "bench/against/perftest.h"

#include <cmath>
#include <sstream>
#include <vector>

#include "bench/against/program.h"
#include "bench/against/server_client.h"
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
  TOOL_ASSIGN(const int tcpPort, freePort());
  std::vector<std::string> words{run.program,
                                 "-d",
                                 address.device,
                                 "-i",
                                 std::to_string(address.port),
                                 "-p",
                                 std::to_string(tcpPort),
                                 "-s",
                                 std::to_string(run.bytes),
                                 "-n",
                                 std::to_string(run.messages),
                                 "-F"};  // a processor that changes its speed is a remark, no error
  auto add = [&](const char* option, size_t value) {
    words.emplace_back(option);
    words.push_back(std::to_string(value));
  };
  if (address.gidIndex) add("-x", static_cast<size_t>(*address.gidIndex));
  if (run.program != std::string(kWriteLatency)) add("-t", run.depth);
  const Command server{words, {}};
  words.emplace_back("127.0.0.1");
  return runServerAndClient(server, {words, {}}, run.timeout);
}

// On a busy host its two ends now and then wait for each other: a second try, on another port,
// works.
Result<std::string> runBothEnds(const RdmaAddress& address, const PerftestRun& run) {
  auto printed = runOnce(address, run);
  return printed.status().code() == Code::deadlineExceeded ? runOnce(address, run) : printed;
}

}  // namespace

Status findPerftest() {
  for (const char* program : {kWriteBandwidth, kReadBandwidth, kWriteLatency})
    TOOL_TRY(needProgram(program, "perftest"));
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
  if (numbers.size() < 5) return nothingMeasured("perftest", printed);
  constexpr double kMB = 1 << 20;  // what perftest calls so
  const double bySpeed = numbers[3] * kMB / numbers[0];
  const double byCount = numbers[4] * 1e6;
  // Speeds have two decimals, counts six: each is exact where the other is not.
  const double rate = numbers[3] / 1e-2 > numbers[4] / 1e-6 ? bySpeed : byCount;
  if (!isPositive(rate)) return nothingMeasured("perftest", printed);
  return 1e9 / rate;
}

Result<Percentiles> parseLatency(const std::string& printed) {
  // bytes, rounds, least, most, typical, mean, deviation, 99 %, 99.9 %; in microseconds
  const auto numbers = numbersBelowHeading(printed);
  if (numbers.size() < 9 || !isPositive(numbers[4])) return nothingMeasured("perftest", printed);
  return Percentiles{numbers[4] * 1000, numbers[7] * 1000, numbers[8] * 1000};
}

}  // namespace hmc::bench
