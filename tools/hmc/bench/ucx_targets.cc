#include <algorithm>
#include <optional>

#include <fmt/core.h>

#include "bench/against/competitors.h"
#include "bench/bare_ucp.h"
#include "bench/report/units.h"
#include "bench/targets.h"

// What the ucx transport adds to UCX: both put into the same memory in the same run, over the path
// that UCX takes for endpoints that detect a dead peer.
namespace hmc::bench {

namespace {

constexpr double kMostAdded = 100;  // ns
constexpr double kLeastShare = 0.97;

Status besideBareUcp(Path& path, BareUcp& bare, const Plan& plan, const Step& step, Run& run) {
  constexpr const char* kCeiling = "bare UCP put + flush";
  auto comparePut = [&](size_t bytes, Clock::duration time) {
    return compare(
        OneTransfer{path, true, bytes}, [&] { return bare.put(bytes); }, time);
  };
  step("ucx put 8 B");
  TOOL_ASSIGN(Compared small, comparePut(8, 4 * plan.time));
  Target added = timeAtMost("ucx put 8 B", small, kCeiling, 0);
  added.limit = fmt::format("<= {:.0f} ns more", kMostAdded);
  added.met = median(small.ours) - median(small.ceiling) <= kMostAdded;
  run.targets.push_back(added);
  for (size_t bytes : {64 * kKiB, kMiB, 64 * kMiB}) {
    if (bytes > path.local.size()) break;
    step("ucx put " + sizeText(bytes));
    TOOL_ASSIGN(Compared one, comparePut(bytes, 8 * plan.time));
    run.targets.push_back(
        rateAtLeast("ucx put " + sizeText(bytes), one, kCeiling, kLeastShare, bandwidthOf(bytes)));
  }
  return Status();
}

Status besidePerftest(Path& path, const Plan& plan, const Step& step, Run& run) {
  constexpr int kTurns = 5;
  const size_t bytes = path.local.size();
  step("ucx put " + sizeText(bytes) + " beside ucx_perftest");
  auto ours = [&]() -> Result<double> {
    Samples puts;
    TOOL_TRY(slice(OneTransfer{path, true, bytes}, 1, 8 * plan.time / kTurns, puts));
    return median(puts);
  };
  TOOL_ASSIGN(const Compared compared,
              compareRuns(
                  ours, [&] { return ucxTcpSend(bytes, std::chrono::seconds(60)); }, kTurns));
  run.targets.push_back(rateAtLeast("ucx put " + sizeText(bytes) + " over tcp", compared,
                                    "ucx_perftest tag_bw", kLeastShare, bandwidthOf(bytes)));
  return Status();
}

}  // namespace

Status measureUcxTargets(Session& session, const Plan& plan, const Step& step, Run& run) {
  auto note = [&](const Status& why) {
    run.notes.push_back("ucx: the targets were not measured: " + why.message());
    return Status();
  };
  auto path = session.path("ucx");
  if (!path.ok()) return note(path.status());
  auto address = session.request("ucp");
  if (!address.ok()) return note(address.status());
  auto bare = BareUcp::connect(*address, (*path)->local.data());
  if (!bare.ok()) return note(bare.status());
  TOOL_TRY(besideBareUcp(**path, **bare, plan, step, run));
  if ((*path)->remote.path().find("tcp/") == std::string::npos) return Status();
  if (Status status = besidePerftest(**path, plan, step, run); !status.ok()) return note(status);
  return Status();
}

}  // namespace hmc::bench
