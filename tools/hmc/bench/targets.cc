#include "bench/targets.h"

#include <sys/uio.h>

#include <algorithm>

#include <fmt/core.h>

#include "bench/report/units.h"

namespace hmc::bench {

namespace {

constexpr const char* kSmallPut = "put 8 B, Node";

Target absolute(std::string what, const Compared& compared, const std::string& ceiling,
                double nanoseconds) {
  Target target = timeAtMost(std::move(what), compared, ceiling, nanoseconds);
  target.limit = fmt::format("<= {:.0f} ns", nanoseconds);
  target.met = median(compared.ours) <= nanoseconds;
  return target;
}

Status communicatorPut(Bench& bench, const Path& path) {
  Session& session = bench.session;
  TOOL_ASSIGN(auto communicator, session.communicator(session.newRank(), "ipc"));
  const std::string host = session.host();
  const uint16_t port = session.server().communicatorPort;
  auto put = [&] {
    return communicator->put(host, port, 0, 0, 8, ConnType::AUTO) == status_t::SUCCESS
               ? Status()
               : Status(Code::failed, lastError());
  };
  bench.step("put 8 B, Communicator");
  TOOL_ASSIGN(Compared documented, compare(put, bareCopy(session, path, true, 8), bench.plan.time));
  bench.run.targets.push_back(absolute("put 8 B, Communicator", documented, "bare store", 100));
  return Status();
}

Status sameHost(Bench& bench) {
  auto& [session, plan, step, run] = bench;
  TOOL_ASSIGN(auto path, session.path("ipc"));
  step(kSmallPut);
  TOOL_ASSIGN(Compared small, compareTransfer(session, *path, "ipc", true, 8, plan.time));
  run.targets.push_back(absolute(kSmallPut, small, "bare store", 25));
  run.measurements.push_back(measurementOf("ipc", kLatencySection, /*put=*/true, 8, small));
  TOOL_TRY(communicatorPut(bench, *path));

  struct Limit {
    size_t bytes;
    double ratio;
    int times = 1;
  };
  const size_t all = path->local.size();
  for (auto [bytes, ratio, times] :
       {Limit{4 * kKiB, 1.4}, Limit{64 * kKiB, 1.05}, Limit{kMiB, 1.05}, Limit{all, 0.9, 4}}) {
    const std::string what = "put " + sizeText(bytes);
    step(what);
    TOOL_ASSIGN(Compared one,
                compareTransfer(session, *path, "ipc", true, bytes, times * plan.time));
    run.targets.push_back(timeAtMost(what, one, "memcpy", ratio));
  }
  step("put 256 x 16 KiB");
  TOOL_ASSIGN(Compared batch, compareBatch(session, *path, "ipc", 256, 16 * kKiB, plan.time));
  run.targets.push_back(timeAtMost("put 256 x 16 KiB", batch, "memcpy", 1.05));
  return Status();
}

Status userMemory(Bench& bench) {
  const Hello& server = bench.session.server();
  TOOL_ASSIGN(auto path, bench.session.path("ipc", kUserRegion));
  for (size_t bytes : {size_t{8}, 64 * kKiB, kMiB}) {
    const std::string what = "put " + sizeText(bytes) + ", user's memory";
    bench.step(what);
    auto bare = [&] {
      iovec here{path->local.data(), bytes};
      iovec there{reinterpret_cast<void*>(server.userAddress), bytes};  // NOLINT
      ssize_t moved = process_vm_writev(server.pid, &here, 1, &there, 1, 0);
      return moved == static_cast<ssize_t>(bytes) ? Status()
                                                  : tool::systemError("process_vm_writev");
    };
    TOOL_ASSIGN(Compared one, compare(OneTransfer{*path, true, bytes}, bare, bench.plan.time));
    bench.run.targets.push_back(timeAtMost(what, one, "process_vm_writev", 1.1));
  }
  return Status();
}

Status overTcp(Bench& bench) {
  auto& [session, plan, step, run] = bench;
  TOOL_ASSIGN(auto path, session.path("tcp"));
  step("tcp put 8 B");
  TOOL_ASSIGN(Compared small, compareTransfer(session, *path, "tcp", true, 8, 2 * plan.time));
  run.targets.push_back(timeAtMost("tcp put 8 B", small, "raw echo", 1.4));
  const size_t bytes = path->local.size();
  const std::string what = "tcp put " + sizeText(bytes);
  step(what);
  TOOL_ASSIGN(Compared large, compareTransfer(session, *path, "tcp", true, bytes, 8 * plan.time));
  run.targets.push_back(rateAtLeast(what, large, "raw socket", 0.9, bandwidthOf(bytes)));
  return Status();
}

Status tagsThroughMemory(Bench& bench) {
  bench.step("tag round trip, same host");
  TOOL_ASSIGN(Compared memory, compareTags(bench.session, "ipc", bench.plan.time));
  bench.run.targets.push_back(timeAtMost("tag round trip, same host", memory, "bare flag", 2));
  return Status();
}

Status tagsOverTcp(Bench& bench) {
  bench.step("tag round trip, tcp");
  TOOL_ASSIGN(Compared tcp, compareTags(bench.session, "tcp", 2 * bench.plan.time));
  bench.run.targets.push_back(timeAtMost("tag round trip, tcp", tcp, "raw echo", 1.4));
  return Status();
}

// How long a step takes: so many times what --seconds says, and seconds beside that.
struct StepTime {
  double times;
  double seconds = 0;
};
struct TargetGroup {
  const char* transport;
  Status (*measure)(Bench&);
  std::vector<StepTime> steps;
};
// In the order of measuring. Large transfers take their time whatever --seconds says.
const std::vector<TargetGroup>& groups() {
  static const std::vector<TargetGroup> all{
      {"ipc", sameHost, {{1}, {1}, {1}, {1}, {1}, {4, 0.5}, {1}}},
      {"ipc", userMemory, {{1}, {1}, {1}}},
      {"tcp", overTcp, {{2}, {8, 1}}},
      {"ipc", tagsThroughMemory, {{2}}},
      {"tcp", tagsOverTcp, {{3}}},
      {"verbs", measureVerbsTargets, {{1, 2}, {1, 2}, {1, 2}, {1, 2}, {1, 2}, {1, 2}}},
      {"ucx", measureUcxTargets, {{2}, {2}, {2}, {8, 1}, {8, 4}}},
      {"ipc", measureScaling, {{1, 2}, {1}, {1}, {0, 6}}},
  };
  return all;
}

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool isSmallSharedPut(const Measurement& measurement) {
  return measurement.section == kLatencySection && measurement.bytes == 8 &&
         measurement.what.rfind("put", 0) == 0 && measurement.path != "tcp";
}

}  // namespace

Target timeAtMost(std::string what, const Compared& compared, const std::string& ceiling,
                  double limit) {
  const bool measured = !compared.ceiling.empty();
  return {std::move(what),
          timeText(median(compared.ours)),
          measured ? fmt::format("{} {}", ceiling, timeText(median(compared.ceiling))) : "",
          compared.ratio,
          fmt::format("<= {} x", limit),
          compared.ratio <= limit,
          measured};
}

Target rateAtLeast(std::string what, const Compared& compared, const std::string& ceiling,
                   double limit, const RateText& text) {
  const double share = 1 / compared.ratio;
  const bool measured = !compared.ceiling.empty();
  return {std::move(what),
          text(median(compared.ours)),
          measured ? fmt::format("{} {}", ceiling, text(median(compared.ceiling))) : "",
          share,
          fmt::format(">= {} x", limit),
          share >= limit,
          measured};
}

RateText bandwidthOf(size_t bytes) {
  return [bytes](double each) { return speedText(static_cast<double>(bytes) / each); };
}

void addCompetitorTargets(Run& run) {
  auto ours = std::find_if(
      run.measurements.begin(), run.measurements.end(),
      [](const Measurement& one) { return one.who == "hmc" && isSmallSharedPut(one); });
  if (ours == run.measurements.end()) return;
  for (const Measurement& theirs : run.measurements) {
    if (theirs.who == "hmc" || !isSmallSharedPut(theirs)) continue;
    const double ratio = ours->value / theirs.value;
    run.targets.push_back(
        {kSmallPut, timeText(ours->value),
         fmt::format("{} {} ({}) {}", theirs.who, theirs.what, theirs.path, timeText(theirs.value)),
         ratio, "< 1 x", ratio < 1});
  }
}

std::vector<double> secondsOfTargets(const std::vector<std::string>& transports, bool onDevice,
                                     double each) {
  if (onDevice) return std::vector<double>(kDeviceTargetSteps, 4 * each);
  std::vector<double> all;
  for (const auto& group : groups()) {
    if (!contains(transports, group.transport)) continue;
    for (const StepTime& step : group.steps) all.push_back(step.times * each + step.seconds);
  }
  return all;
}

Status measureTargets(Bench& bench, const std::vector<std::string>& transports) {
  if (!bench.session.local()) {
    return Status(Code::unsupported,
                  "--targets compares with this machine's own memory: run it without --connect");
  }
  if (bench.session.onDevice()) return measureDeviceTargets(bench, transports);
  for (const auto& group : groups()) {
    if (contains(transports, group.transport)) TOOL_TRY(group.measure(bench));
  }
  return Status();
}

}  // namespace hmc::bench
