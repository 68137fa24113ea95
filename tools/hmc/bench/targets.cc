#include "bench/targets.h"

#include <sys/uio.h>

#include <algorithm>
#include <cstring>

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

Status communicatorPut(Session& session, const Path& path, const Plan& plan, Run& run) {
  TOOL_ASSIGN(auto communicator, session.communicator(session.newRank(), "ipc"));
  const std::string host = session.host();
  const uint16_t port = session.server().communicatorPort;
  auto put = [&] {
    return communicator->put(host, port, 0, 0, 8, ConnType::AUTO) == status_t::SUCCESS
               ? Status()
               : Status(Code::failed, lastError());
  };
  TOOL_ASSIGN(Compared documented, compare(put, bareCopy(session, path, true, 8), plan.time));
  run.targets.push_back(absolute("put 8 B, Communicator", documented, "bare store", 100));
  return Status();
}

Status sameHost(Session& session, const Plan& plan, const Step& step, Run& run) {
  TOOL_ASSIGN(auto path, session.path("ipc"));
  step(kSmallPut);
  TOOL_ASSIGN(Compared small, compareTransfer(session, *path, "ipc", true, 8, plan.time));
  run.targets.push_back(absolute(kSmallPut, small, "bare store", 25));
  run.measurements.push_back(measurementOf("ipc", kLatencySection, /*put=*/true, 8, small));

  step("put 8 B, Communicator");
  TOOL_TRY(communicatorPut(session, *path, plan, run));

  struct Limit {
    size_t bytes;
    double ratio;
  };
  for (auto [bytes, ratio] : {Limit{4 * kKiB, 1.4}, Limit{64 * kKiB, 1.05}, Limit{kMiB, 1.05}}) {
    step("put " + sizeText(bytes));
    TOOL_ASSIGN(Compared one, compareTransfer(session, *path, "ipc", true, bytes, plan.time));
    run.targets.push_back(timeAtMost("put " + sizeText(bytes), one, "memcpy", ratio));
  }
  step("put 256 x 16 KiB");
  TOOL_ASSIGN(Compared batch, compareBatch(session, *path, "ipc", 256, 16 * kKiB, plan.time));
  run.targets.push_back(timeAtMost("put 256 x 16 KiB", batch, "memcpy", 1.05));
  step("put 64 MiB");
  TOOL_ASSIGN(Compared large,
              compareTransfer(session, *path, "ipc", true, path->local.size(), 4 * plan.time));
  run.targets.push_back(timeAtMost("put " + sizeText(path->local.size()), large, "memcpy", 0.9));
  return Status();
}

Status userMemory(Session& session, const Plan& plan, const Step& step, Run& run) {
  TOOL_ASSIGN(auto path, session.path("ipc", kUserRegion));
  for (size_t bytes : {size_t{8}, 64 * kKiB, kMiB}) {
    step("put " + sizeText(bytes) + " into the user's own memory");
    auto bare = [&] {
      iovec here{path->local.data(), bytes};
      iovec there{reinterpret_cast<void*>(session.server().userAddress), bytes};  // NOLINT
      ssize_t moved = process_vm_writev(session.server().pid, &here, 1, &there, 1, 0);
      return moved == static_cast<ssize_t>(bytes)
                 ? Status()
                 : Status(Code::failed, std::string("process_vm_writev: ") + std::strerror(errno));
    };
    TOOL_ASSIGN(Compared one, compare(OneTransfer{*path, true, bytes}, bare, plan.time));
    run.targets.push_back(
        timeAtMost("put " + sizeText(bytes) + ", user's memory", one, "process_vm_writev", 1.1));
  }
  return Status();
}

Status overTcp(Session& session, const Plan& plan, const Step& step, Run& run) {
  TOOL_ASSIGN(auto path, session.path("tcp"));
  step("tcp put 8 B");
  TOOL_ASSIGN(Compared small, compareTransfer(session, *path, "tcp", true, 8, 2 * plan.time));
  run.targets.push_back(timeAtMost("tcp put 8 B", small, "raw echo", 1.4));
  step("tcp put 64 MiB");
  const size_t bytes = path->local.size();
  TOOL_ASSIGN(Compared large, compareTransfer(session, *path, "tcp", true, bytes, 8 * plan.time));
  run.targets.push_back(
      rateAtLeast("tcp put " + sizeText(bytes), large, "raw socket", 0.9, bandwidthOf(bytes)));
  return Status();
}

Status tagsThroughMemory(Session& session, const Plan& plan, const Step& step, Run& run) {
  step("tag round trip, same host");
  TOOL_ASSIGN(Compared memory, compareTags(session, "ipc", plan.time));
  run.targets.push_back(timeAtMost("tag round trip, same host", memory, "bare flag", 2));
  return Status();
}

Status tagsOverTcp(Session& session, const Plan& plan, const Step& step, Run& run) {
  step("tag round trip, tcp");
  TOOL_ASSIGN(Compared tcp, compareTags(session, "tcp", 2 * plan.time));
  run.targets.push_back(timeAtMost("tag round trip, tcp", tcp, "raw echo", 1.4));
  return Status();
}

struct TargetGroup {
  const char* transport;
  Status (*measure)(Session&, const Plan&, const Step&, Run&);
  size_t steps;
};
// In the order of measuring.
constexpr TargetGroup kGroups[] = {
    {"ipc", sameHost, 7},
    {"ipc", userMemory, 3},
    {"tcp", overTcp, 2},
    {"ipc", tagsThroughMemory, 1},
    {"tcp", tagsOverTcp, 1},
    {"verbs", measureVerbsTargets, kVerbsTargetSteps},
    {"ucx", measureUcxTargets, kUcxTargetSteps},
    {"ipc", measureScaling, kScalingSteps},
};

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
  return {std::move(what),
          timeText(median(compared.ours)),
          fmt::format("{} {}", ceiling, timeText(median(compared.ceiling))),
          compared.ratio,
          fmt::format("<= {} x", limit),
          compared.ratio <= limit};
}

Target rateAtLeast(std::string what, const Compared& compared, const std::string& ceiling,
                   double limit, const RateText& text) {
  const double share = 1 / compared.ratio;
  return {std::move(what),
          text(median(compared.ours)),
          fmt::format("{} {}", ceiling, text(median(compared.ceiling))),
          share,
          fmt::format(">= {} x", limit),
          share >= limit};
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

size_t targetSteps(const std::vector<std::string>& transports) {
  size_t steps = 0;
  for (const auto& group : kGroups)
    steps += contains(transports, group.transport) ? group.steps : 0;
  return steps;
}

Status measureTargets(Session& session, const std::vector<std::string>& transports,
                      const Plan& plan, const Step& step, Run& run) {
  if (!session.local()) {
    return Status(Code::unsupported,
                  "--targets compares with this machine's own memory: run it without --connect");
  }
  for (const auto& group : kGroups) {
    if (contains(transports, group.transport)) TOOL_TRY(group.measure(session, plan, step, run));
  }
  return Status();
}

}  // namespace hmc::bench
