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

Status besideBareUcp(Bench& bench, Path& path, BareUcp& bare) {
  constexpr const char* kCeiling = "bare UCP put + flush";
  auto comparePut = [&](size_t bytes, Clock::duration time) {
    return compare(
        OneTransfer{path, true, bytes}, [&] { return bare.put(bytes); }, time);
  };
  bench.step("ucx put 8 B");
  TOOL_ASSIGN(Compared small, comparePut(8, 4 * bench.plan.time));
  Target added = timeAtMost("ucx put 8 B", small, kCeiling, 0);
  added.limit = fmt::format("<= {:.0f} ns more", kMostAdded);
  added.met = median(small.ours) - median(small.ceiling) <= kMostAdded;
  bench.run.targets.push_back(added);
  for (size_t bytes : {64 * kKiB, kMiB, 64 * kMiB}) {
    if (bytes > path.local.size()) break;
    bench.step("ucx put " + sizeText(bytes));
    TOOL_ASSIGN(Compared one, comparePut(bytes, 8 * bench.plan.time));
    bench.run.targets.push_back(
        rateAtLeast("ucx put " + sizeText(bytes), one, kCeiling, kLeastShare, bandwidthOf(bytes)));
  }
  return Status();
}

Status besidePerftest(Bench& bench, Path& path) {
  constexpr int kTurns = 5;
  const size_t bytes = path.local.size();
  bench.step("ucx put " + sizeText(bytes) + " beside ucx_perftest");
  auto ours = [&]() -> Result<double> {
    Samples puts;
    TOOL_TRY(slice(OneTransfer{path, true, bytes}, 1, 8 * bench.plan.time / kTurns, puts));
    return median(puts);
  };
  TOOL_ASSIGN(const Compared compared,
              compareRuns(
                  ours, [&] { return ucxTcpSend(bytes, std::chrono::seconds(60)); }, kTurns));
  bench.run.targets.push_back(rateAtLeast("ucx put " + sizeText(bytes) + " over tcp", compared,
                                          "ucx_perftest tag_bw", kLeastShare, bandwidthOf(bytes)));
  return Status();
}

}  // namespace

Status measureUcxTargets(Bench& bench) {
  auto note = [&](const Status& why) {
    bench.run.notes.push_back("ucx: the targets were not measured: " + why.message());
    return Status();
  };
  auto path = bench.session.path("ucx");
  if (!path.ok()) return note(path.status());
  auto address = bench.session.request("ucp");
  if (!address.ok()) return note(address.status());
  auto bare = BareUcp::connect(*address, (*path)->local.data());
  if (!bare.ok()) return note(bare.status());
  TOOL_TRY(besideBareUcp(bench, **path, **bare));
  if ((*path)->remote.path().find("tcp/") == std::string::npos) return Status();
  if (Status status = besidePerftest(bench, **path); !status.ok()) return note(status);
  return Status();
}

}  // namespace hmc::bench
