#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

// What a benchmark run found out. Measuring fills it in, bench/report/ shows it.
namespace hmc::bench {

enum class Unit { nanoseconds, gigabytesPerSecond };  // GB is 1e9 bytes

struct Percentiles {
  double p50 = 0;
  double p99 = 0;
  double p999 = 0;
};

// The best that this machine does for the same job, measured in the same run.
struct Ceiling {
  std::string name;  // "memcpy", "raw socket echo"
  double value = 0;  // in the measurement's unit
};

// The sections that others are shown in beside us.
inline constexpr const char* kLatencySection = "blocking latency";
inline constexpr const char* kBandwidthSection = "bandwidth";

struct Measurement {
  std::string section;      // "blocking latency", "bandwidth", "batch of 256", "control"
  std::string who = "hmc";  // or whom it is compared with: "UCX 1.13.1"
  std::string what;         // "put", "get", "tag round trip"
  std::string path;         // "ipc", "tcp", or what the other one used
  size_t bytes = 0;         // of one operation
  Unit unit = Unit::nanoseconds;
  double value = 0;  // the median
  std::optional<Percentiles> spread;
  std::optional<Ceiling> ceiling;
};

// How much of its ceiling a measurement reaches, in percent: 100 is the limit itself, whatever the
// unit. No value without a ceiling.
std::optional<double> percentOfCeiling(const Measurement& measurement);

// One promise of docs/performance.md, and how it was kept in this run.
struct Target {
  std::string what;      // "put 64 KiB, same host"
  std::string measured;  // "1.64 us"
  std::string against;   // "memcpy 1.60 us"; empty for a target that is an absolute measurement
  double ratio = 0;      // what is compared with the limit below
  std::string limit;     // "<= 1.05 x"
  bool met = false;
};

// One operation of one size over every transport, and the one that a Node takes which may use them
// all.
struct PathRow {
  std::string what;  // "put", "get"
  size_t bytes = 0;
  std::vector<std::pair<std::string, double>> times;  // transport and nanoseconds, the median
  std::string taken;
};

// The quickest of a row, and how many times as fast as the one that is taken.
struct Quickest {
  std::string transport;
  double factor = 1;
};
Quickest quickestOf(const PathRow& row);
// What is taken is the quickest, or so near to it that a second path would not be worth having.
bool isWellChosen(const PathRow& row);

struct Run {
  // In the order in which they are shown: "machine", "transport", "settings", ...
  std::vector<std::pair<std::string, std::string>> header;
  std::vector<Measurement> measurements;
  std::vector<Target> targets;
  std::vector<PathRow> paths;
  // Sentences for the end: who could not be compared with and why.
  std::vector<std::string> notes;
};

}  // namespace hmc::bench
