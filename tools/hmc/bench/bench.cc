#include "bench/bench.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include <fmt/core.h>

#include "bench/against/competitors.h"
#include "bench/expected_time.h"
#include "bench/report/progress.h"
#include "bench/report/report.h"
#include "bench/report/units.h"
#include "bench/targets.h"
#include "hmc/info.h"
#include "hmc/measurements.h"

namespace hmc::bench {

namespace {

Plan planOf(const BenchOptions& options) {
  Plan plan;
  plan.time =
      std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(options.seconds));
  plan.window = options.window;
  plan.verify = options.verify;
  for (size_t bytes = options.smallest; bytes <= options.largest; bytes *= 2)
    plan.sizes.push_back(bytes);
  return plan;
}

// What can be measured with this peer; an error for one that was asked for and cannot.
Result<std::vector<std::string>> transportsFor(const Session& session,
                                               const std::vector<std::string>& wanted) {
  std::vector<std::string> usable;
  std::string names;
  for (const PathReport& path : session.paths()) {
    const bool asked = std::find(wanted.begin(), wanted.end(), path.transport) != wanted.end();
    if (path.usable && (wanted.empty() || asked)) usable.push_back(path.transport);
    if (!path.usable && asked)
      return Status(Code::unsupported, path.transport + " cannot be measured: " + path.reason);
    names += (names.empty() ? "" : ", ") + path.transport;
  }
  for (const auto& name : wanted) {
    if (std::find(usable.begin(), usable.end(), name) == usable.end()) {
      return Status(Code::invalidArgument,
                    fmt::format("there is no transport \"{}\"; there are {}", name, names));
    }
  }
  if (usable.empty()) return Status(Code::unsupported, "no transport reaches the other side");
  return usable;
}

std::string changedSettings() {
  std::string all;
  for (const SettingReport& setting : settingsReport()) {
    if (!setting.fromEnvironment) continue;
    all += (all.empty() ? "" : ", ") + setting.variable + "=" + setting.value;
  }
  return all.empty() ? "defaults" : all;
}

void describe(const Session& session, const BenchOptions& options,
              const std::vector<std::string>& transports, Run& run) {
  run.header = describeMachine();
  run.header.emplace_back(
      "peer", session.local() ? "a second process on this machine" : "at " + session.address());
  std::string memory;
  std::string names;
  for (const auto& name : transports) {
    auto path = session.path(name);
    if (path.ok()) {
      memory = fmt::format("{} here, {} there", (*path)->local.device().toString(),
                           (*path)->remote.device().toString());
    }
    names += (names.empty() ? "" : ", ") + (path.ok() ? (*path)->remote.path() : name);
  }
  if (session.onDevice()) run.header.emplace_back("memory", memory);
  run.header.emplace_back("transports", names);
  run.header.emplace_back("settings", changedSettings());
  if (options.allPaths || options.protections) {
    run.header.emplace_back(
        "method", fmt::format("{} s per line, the paths in turns, medians", options.seconds));
    return;
  }
  if (options.firstPut) {
    run.header.emplace_back("method", "new regions on both sides, one put of everything, once");
    return;
  }
  run.header.emplace_back(
      "method",
      fmt::format("{} s per measurement, ours and its ceiling in turns, medians; up to {} "
                  "in flight for bandwidth",
                  options.seconds, options.window));
}

// Targets of a transport that cannot be used here are neither met nor missed.
void noteMissingTransports(const Session& session, const BenchOptions& options, Run& run) {
  if (!options.transports.empty()) return;
  for (const PathReport& path : session.paths()) {
    if (!path.usable) run.notes.push_back(path.transport + ": not measured: " + path.reason);
  }
}

void addCompetitors(const BenchOptions& options, const Plan& plan, Progress& progress, Run& run) {
  Workload workload;
  // Only the smallest put has a target.
  workload.sizes = options.targets ? std::vector<size_t>{8} : plan.sizes;
  workload.here = options.session.memory;
  workload.there = options.session.peerMemory;
  Comparison others = runCompetitors(options.against, workload, progress);
  run.measurements.insert(run.measurements.end(), others.measurements.begin(),
                          others.measurements.end());
  run.notes.insert(run.notes.end(), others.notes.begin(), others.notes.end());
}

void noteMissingCeiling(const Session& session, Run& run) {
  if (!session.onDevice() || session.bareCuda().ok()) return;
  run.notes.push_back("bare copy: not measured: " + session.bareCuda().status().message());
}

// For Nodes that are told to choose by them.
Status save(const std::string& file, const Run& run, const Session& session) {
  const DeviceKind kind = session.memory().kind;
  const bool away = session.away();
  std::vector<hmc::Measurement> times;
  for (const Measurement& one : run.measurements) {
    if (one.who == "hmc" && one.section == kLatencySection)
      times.push_back({one.path, kind, one.what, one.bytes, one.value, away});
  }
  for (const PathRow& row : run.paths) {
    for (const auto& [transport, ns] : row.times)
      times.push_back({transport, kind, row.what, row.bytes, ns, away});
  }
  return saveMeasurements(file, times);
}

std::vector<double> expectedSeconds(const Session& session, const BenchOptions& options,
                                    const std::vector<std::string>& transports, const Plan& plan) {
  if (options.targets) return secondsOfTargets(transports, session.onDevice(), options.seconds);
  if (options.firstPut) return secondsOfFirstPuts(plan);
  if (options.allPaths) return secondsOfAllPaths(transports, plan);
  if (options.protections) return secondsOfAllPaths({"tcp", "tcp", "tcp"}, plan);
  return secondsOfSweep(transports, plan, options.session, session.local());
}

Status measure(Session& session, const BenchOptions& options,
               const std::vector<std::string>& transports, Run& run) {
  const Plan plan = planOf(options);
  Progress progress(expectedSeconds(session, options, transports, plan));
  Bench bench{session, plan, [&](const std::string& what) { progress.next(what); }, run};
  if (options.allPaths) return measureAllPaths(bench, transports);
  if (options.protections) return measureProtections(bench);
  if (options.firstPut) return measureFirstPuts(bench);
  noteMissingCeiling(session, run);
  if (options.targets) {
    noteMissingTransports(session, options, run);
    TOOL_TRY(measureTargets(bench, transports));
  }
  for (const auto& transport : transports) {
    if (options.targets) break;
    TOOL_TRY(measureTransfers(bench, transport));
    TOOL_TRY(measureBatches(bench, transport));
    if (!session.onDevice()) TOOL_TRY(measureControl(bench, transport));
  }
  if (options.compare) addCompetitors(options, plan, progress, run);
  if (options.targets && options.compare) addCompetitorTargets(run);
  return Status();
}

Status measureAll(const BenchOptions& options, Run& run) {
  // Fails now if the file cannot be written, not after minutes of measuring.
  if (!options.save.empty()) TOOL_TRY(saveMeasurements(options.save, {}));
  TOOL_ASSIGN(auto session, Session::open(options.session));
  TOOL_ASSIGN(const auto transports, transportsFor(*session, options.transports));
  describe(*session, options, transports, run);
  TOOL_TRY(measure(*session, options, transports, run));
  return options.save.empty() ? Status() : save(options.save, run, *session);
}

}  // namespace

int runBench(const BenchOptions& options) {
  Run run;
  const Status status = measureAll(options, run);
  // What was measured before a failure is worth seeing, too.
  if (!run.measurements.empty() || !run.targets.empty() || !run.paths.empty() ||
      !run.notes.empty()) {
    std::string text = options.json  ? jsonText(run)
                       : options.csv ? csvText(run)
                                     : tableText(run, wantsColour(STDOUT_FILENO));
    std::fwrite(text.data(), 1, text.size(), stdout);
  }
  if (!status.ok()) {
    fmt::print(stderr, "hmc: {}\n", status.message());
    return 1;
  }
  const bool met = std::all_of(run.targets.begin(), run.targets.end(),
                               [](const Target& target) { return target.met || !target.compared; });
  return met && std::all_of(run.paths.begin(), run.paths.end(), isWellChosen) ? 0 : 1;
}

}  // namespace hmc::bench
