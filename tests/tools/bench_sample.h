#pragma once

#include <limits>

#include "bench/run.h"

namespace hmc::bench {

// A Run with one of everything, small enough to know by heart.
inline Run sampleRun() {
  Run run;
  run.header = {{"machine", "box, \"two\" cores & <more>"}, {"date", "2026-01-31"}};
  run.measurements = {
      {.section = kLatencySection,
       .what = "put",
       .path = "ipc",
       .bytes = 65536,
       .unit = Unit::nanoseconds,
       .value = 6400,
       .spread = Percentiles{6400, 7000, 9000},
       .ceiling = Ceiling{"memcpy", 6080}},
      {.section = kLatencySection,
       .what = "put",
       .path = "ipc",
       .bytes = 8,
       .unit = Unit::nanoseconds,
       .value = 20,
       .spread = Percentiles{20, 24, 31},
       .ceiling = Ceiling{"memcpy", 2}},
      {.section = kLatencySection,
       .who = "UCX 1.13.1",
       .what = "put, streamed",
       .path = "shm",
       .bytes = 8,
       .unit = Unit::nanoseconds,
       .value = 34},
      {.section = kBandwidthSection,
       .what = "put",
       .path = "ipc",
       .bytes = 8,
       .unit = Unit::gigabytesPerSecond,
       .value = 0.25,
       .ceiling = Ceiling{"memcpy", 0.5}},
      {.section = kBandwidthSection,
       .what = "put",
       .path = "ipc",
       .bytes = 65536,
       .unit = Unit::gigabytesPerSecond,
       .value = 9.9,
       .ceiling = Ceiling{"memcpy", 11}},
  };
  run.targets = {{"put 8 B", "20.0 ns", "", 20, "<= 25 ns", true},
                 {"put 64 KiB", "6.40 us", "memcpy 6.08 us", 1.0526, "<= 1.05 x", false}};
  run.notes = {"verbs: no device"};
  return run;
}

// What goes wrong in measuring: nothing, zeros, not-a-numbers.
inline Run brokenRun() {
  const double kNan = std::numeric_limits<double>::quiet_NaN();
  const double kInf = std::numeric_limits<double>::infinity();
  Run run;
  run.header = {{"machine", "bytes that are no text: \xff\x01"}};
  for (Unit unit : {Unit::nanoseconds, Unit::gigabytesPerSecond}) {
    for (double value : {0.0, kNan, kInf, -kInf, -1.0}) {
      for (double ceiling : {0.0, kNan, kInf, 1.0}) {
        for (size_t bytes : {size_t{0}, size_t{8}}) {
          run.measurements.push_back({.section = "broken",
                                      .what = "put",
                                      .bytes = bytes,
                                      .unit = unit,
                                      .value = value,
                                      .spread = Percentiles{value, value, value},
                                      .ceiling = Ceiling{"limit", ceiling}});
        }
      }
    }
  }
  run.targets = {{"never measured", "", "", kNan, "", false}, {"by zero", "", "", kInf, "", false}};
  return run;
}

}  // namespace hmc::bench
