#include <fmt/core.h>

#include "bench/measure.h"

namespace hmc::bench {

Result<Samples> inTurns(const Paths& paths, bool put, size_t bytes, Clock::duration time) {
  constexpr int kRounds = 8;
  const auto part = time / (kRounds * static_cast<int>(paths.size()));
  std::vector<size_t> counts;
  for (const auto& path : paths) {
    TOOL_ASSIGN(const size_t count, calibrate(OneTransfer{*path, put, bytes}));
    counts.push_back(count);
  }
  std::vector<Samples> samples(paths.size());
  for (int round = 0; round <= kRounds; ++round) {
    for (size_t i = 0; i < paths.size(); ++i) {
      Samples one;
      TOOL_TRY(slice(OneTransfer{*paths[i], put, bytes}, counts[i], part, one));
      if (round > 0) samples[i].insert(samples[i].end(), one.begin(), one.end());
    }
  }
  Samples medians;
  for (const auto& series : samples) medians.push_back(median(series));
  return medians;
}

namespace {

// The transport that carries such a transfer of a Node that has them all.
Result<std::string> taken(const Path& path, bool put, size_t bytes) {
  TOOL_ASSIGN(Ticket ticket, (OneTransfer{path, put, bytes}.start({{0, 0, bytes}})));
  TOOL_TRY(ticket.wait());
  return ticket.transport();
}

}  // namespace

Status measureAllPaths(Bench& bench, const std::vector<std::string>& transports) {
  Paths paths;
  std::vector<std::string> names;
  for (const auto& transport : transports) {
    auto path = bench.session.path(transport);
    if (path.ok()) {
      paths.push_back(*std::move(path));
      names.push_back(transport);
    } else {
      bench.run.notes.push_back(transport + " was not measured: " + path.status().message());
    }
  }
  if (paths.empty()) return Status(Code::unsupported, "no transport reaches the other side");
  // Made before the measuring: it chooses by what HMC_MEASUREMENTS says, or by typical times.
  TOOL_ASSIGN(auto all, bench.session.path(names));
  bench.run.header.emplace_back("choice", all->remote.path());
  for (bool put : {true, false}) {
    for (size_t bytes : bench.plan.sizes) {
      PathRow row{put ? "put" : "get", bytes, {}, ""};
      bench.step(fmt::format("{} of {} bytes over every transport", row.what, bytes));
      TOOL_ASSIGN(const Samples times, inTurns(paths, put, bytes, bench.plan.time));
      for (size_t i = 0; i < names.size(); ++i) row.times.emplace_back(names[i], times[i]);
      TOOL_ASSIGN(row.taken, taken(*all, put, bytes));
      bench.run.paths.push_back(std::move(row));
    }
  }
  return Status();
}

}  // namespace hmc::bench
