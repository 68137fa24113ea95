#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

// What a benchmark run found. Measuring fills it in, bench/report/ prints it.
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

// The sections that competitors appear in beside us.
inline constexpr const char* kLatencySection = "blocking latency";
inline constexpr const char* kBandwidthSection = "bandwidth";

struct Measurement {
  std::string section;      // "blocking latency", "bandwidth", "batch of 256", "control"
  std::string who = "hmc";  // or a competitor: "UCX 1.13.1"
  std::string what;         // "put", "get", "tag round trip"
  std::string path;         // "ipc", "tcp", or what the competitor used
  size_t bytes = 0;         // of one operation
  Unit unit = Unit::nanoseconds;
  double value = 0;  // the median
  std::optional<Percentiles> spread;
  std::optional<Ceiling> ceiling;
};

// How much of its ceiling a measurement reaches, in percent, in either unit. No value without a
// ceiling.
std::optional<double> percentOfCeiling(const Measurement& measurement);

// One target of docs/performance.md, and whether this run met it.
struct Target {
  std::string what;      // "put 64 KiB, same host"
  std::string measured;  // "1.64 us"
  std::string against;   // "memcpy 1.60 us"; empty for an absolute target
  double ratio = 0;      // what the limit is for
  std::string limit;     // "<= 1.05 x"
  bool met = false;
};

// One operation of one size over every transport, and the transport that a Node chooses when it
// may use them all.
struct PathRow {
  std::string what;  // "put", "get"
  size_t bytes = 0;
  std::vector<std::pair<std::string, double>> times;  // transport and nanoseconds, the median
  std::string taken;
};

// The fastest of a row, and how many times as fast as the one that is taken.
struct Quickest {
  std::string transport;
  double factor = 1;
};
Quickest quickestOf(const PathRow& row);
// The one that is taken is the fastest, or too close to it for a second path to be worth opening.
bool isWellChosen(const PathRow& row);

struct Run {
  // In the order of printing: "machine", "transport", "settings", ...
  std::vector<std::pair<std::string, std::string>> header;
  std::vector<Measurement> measurements;
  std::vector<Target> targets;
  std::vector<PathRow> paths;
  // Sentences for the end: what could not be measured, and why.
  std::vector<std::string> notes;
};

// Where measurements are taken, for the header: date, machine, kernel, build.
std::vector<std::pair<std::string, std::string>> describeMachine();
// How many cores this process may use.
size_t usableCores();

}  // namespace hmc::bench
