#pragma once

#include <limits>

#include "bench/run.h"

namespace hmc::bench {

inline Measurement sampleTime(size_t bytes, double nanoseconds, double ceiling) {
  return {.section = kLatencySection,
          .what = "put",
          .path = "ipc",
          .bytes = bytes,
          .value = nanoseconds,
          .spread = Percentiles{nanoseconds, nanoseconds * 1.2, nanoseconds * 1.5},
          .ceiling = Ceiling{"memcpy", ceiling}};
}

inline Measurement sampleSpeed(size_t bytes, double speed, double ceiling) {
  Measurement measurement = sampleTime(bytes, speed, ceiling);
  measurement.section = kBandwidthSection;
  measurement.unit = Unit::gigabytesPerSecond;
  measurement.spread.reset();
  return measurement;
}

// A Run with one of everything, small enough to know by heart.
inline Run sampleRun() {
  Run run;
  run.header = {{"machine", "box, \"two\" cores & <more>"}, {"date", "2026-01-31"}};
  Measurement theirs = sampleTime(8, 34, 0);
  theirs.who = "UCX 1.13.1";
  theirs.what = "put, streamed";
  theirs.path = "shm";
  theirs.spread.reset();
  theirs.ceiling.reset();
  run.measurements = {sampleTime(65536, 6400, 6080), sampleTime(8, 20, 2), theirs,
                      sampleSpeed(8, 0.25, 0.5), sampleSpeed(65536, 9.9, 11)};
  run.targets = {{"put 8 B", "20.0 ns", "", 20, "<= 25 ns", true},
                 {"put 64 KiB", "6.40 us", "memcpy 6.08 us", 1.0526, "<= 1.05 x", false}};
  run.notes = {"verbs: no device"};
  return run;
}

// What failed measurements look like: nothing, zeros, not-a-numbers.
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
