#pragma once

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include "bench/run.h"
#include "hmc/status.h"
#include "try.h"

// How times are taken. Ours and the ceiling run in turns, a slice each, so that other load on the
// machine slows both alike.
namespace hmc::bench {

using Clock = std::chrono::steady_clock;

inline double nanosecondsSince(Clock::time_point start) {
  return std::chrono::duration<double, std::nano>(Clock::now() - start).count();
}

// Nanoseconds per operation, one entry per sample. An operation that is too short for the clock is
// timed many at a time, so its percentiles are those of short averages.
using Samples = std::vector<double>;

inline Percentiles percentiles(Samples values) {
  if (values.empty()) return {};
  std::sort(values.begin(), values.end());
  auto at = [&](double part) {
    return values[static_cast<size_t>(part * static_cast<double>(values.size() - 1) + 0.5)];
  };
  return {at(0.5), at(0.99), at(0.999)};
}
inline double median(Samples values) {
  return percentiles(std::move(values)).p50;
}

struct Compared {
  Samples ours;
  Samples ceiling;
  double ratio = 0;  // of time, ours over the ceiling: the median over the slices
};

// How many operations make a sample that the clock can time.
template <class Job>
Result<size_t> calibrate(Job&& job) {
  constexpr std::chrono::microseconds kSample{5};
  constexpr int kTries = 3;  // the first ones are cold, any may be interrupted
  for (size_t count = 1;; count *= 2) {
    auto best = Clock::duration::max();
    for (int i = 0; i < kTries; ++i) {
      auto start = Clock::now();
      for (size_t j = 0; j < count; ++j) TOOL_TRY(job());
      best = std::min(best, Clock::now() - start);
    }
    if (best >= kSample || count >= size_t{1} << 20) return count;
  }
}

// One slice: at least one sample, then until the time is over.
template <class Job>
Status slice(Job&& job, size_t perSample, Clock::duration length, Samples& into) {
  const auto end = Clock::now() + length;
  for (auto start = Clock::now();;) {
    for (size_t i = 0; i < perSample; ++i) TOOL_TRY(job());
    const auto now = Clock::now();
    into.push_back(std::chrono::duration<double, std::nano>(now - start).count() /
                   static_cast<double>(perSample));
    if (now >= end) return Status();
    start = now;
  }
}

// The first slice of each warms up and does not count.
template <class Ours, class Ceiling>
Result<Compared> compare(Ours&& ours, Ceiling&& ceiling, Clock::duration length) {
  constexpr int kSlices = 12;
  TOOL_ASSIGN(const size_t ourCount, calibrate(ours));
  TOOL_ASSIGN(const size_t itsCount, calibrate(ceiling));
  Compared all;
  Samples ratios;
  for (int i = 0; i <= kSlices; ++i) {
    Compared one;
    TOOL_TRY(slice(ceiling, itsCount, length / (2 * kSlices), one.ceiling));
    TOOL_TRY(slice(ours, ourCount, length / (2 * kSlices), one.ours));
    if (i == 0) continue;
    ratios.push_back(median(one.ours) / median(one.ceiling));
    all.ours.insert(all.ours.end(), one.ours.begin(), one.ours.end());
    all.ceiling.insert(all.ceiling.end(), one.ceiling.begin(), one.ceiling.end());
  }
  all.ratio = median(ratios);
  return all;
}

// The same for jobs that time themselves and answer nanoseconds per operation. The first turn does
// not count.
template <class Ours, class Ceiling>
Result<Compared> compareRuns(Ours&& ours, Ceiling&& ceiling, int turns) {
  Compared all;
  Samples ratios;
  for (int i = 0; i <= turns; ++i) {
    TOOL_ASSIGN(const double its, ceiling());
    TOOL_ASSIGN(const double our, ours());
    if (i == 0) continue;
    all.ceiling.push_back(its);
    all.ours.push_back(our);
    ratios.push_back(our / its);
  }
  all.ratio = median(ratios);
  return all;
}

}  // namespace hmc::bench
