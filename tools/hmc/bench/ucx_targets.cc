#include "bench/ucx_targets.h"

#include <algorithm>
#include <optional>

#include <fmt/core.h>

#include "bench/against/ucx.h"
#include "bench/bare_ucp.h"
#include "bench/report/units.h"

// What the ucx transport adds to UCX: both put into the same memory in the same run, over the way
// that UCX takes for endpoints that notice when a peer dies.
namespace hmc::bench {

namespace {

constexpr size_t kKiB = 1024;
constexpr size_t kMiB = 1024 * kKiB;
constexpr double kMostAdded = 100;  // ns
constexpr double kLeastShare = 0.97;
constexpr std::chrono::seconds kTimeout{60};

std::string rateText(size_t bytes, double nanoseconds) {
  return fmt::format("{:.2f} GB/s", static_cast<double>(bytes) / nanoseconds);
}

Target shareTarget(std::string what, size_t bytes, double ours, const std::string& ceiling,
                   double its, double share) {
  return {std::move(what),
          rateText(bytes, ours),
          fmt::format("{} {}", ceiling, rateText(bytes, its)),
          share,
          fmt::format(">= {} x", kLeastShare),
          share >= kLeastShare};
}

Result<Compared> comparePut(Path& path, BareUcp& bare, size_t bytes, Clock::duration time) {
  auto ours = [&] { return path.remote.put(path.local, 0, 0, bytes); };
  auto its = [&] { return bare.put(bytes); };
  return compare(ours, its, time);
}

Status besideBareUcp(Path& path, BareUcp& bare, const Plan& plan, const Step& step, Run& run) {
  constexpr const char* kCeiling = "bare UCP put + flush";
  step("ucx put 8 B");
  TOOL_ASSIGN(Compared small, comparePut(path, bare, 8, 4 * plan.time));
  const double added = median(small.ours) - median(small.ceiling);
  run.targets.push_back({"ucx put 8 B", timeText(median(small.ours)),
                         fmt::format("{} {}", kCeiling, timeText(median(small.ceiling))),
                         small.ratio, fmt::format("<= {:.0f} ns more", kMostAdded),
                         added <= kMostAdded});
  for (size_t bytes : {64 * kKiB, kMiB, 64 * kMiB}) {
    if (bytes > path.local.size()) break;
    step("ucx put " + sizeText(bytes));
    TOOL_ASSIGN(Compared one, comparePut(path, bare, bytes, 8 * plan.time));
    run.targets.push_back(shareTarget("ucx put " + sizeText(bytes), bytes, median(one.ours),
                                      kCeiling, median(one.ceiling), 1 / one.ratio));
  }
  return Status();
}

// Theirs is a program of its own, so the turns are longer than elsewhere.
Status besidePerftest(Path& path, const Plan& plan, const Step& step, Run& run) {
  constexpr int kTurns = 5;
  const size_t bytes = path.local.size();
  step("ucx put " + sizeText(bytes) + " beside ucx_perftest");
  Samples ours;
  Samples theirs;
  Samples ratios;
  for (int turn = 0; turn < kTurns; ++turn) {
    TOOL_ASSIGN(const double its, ucxTcpSend(bytes, kTimeout));
    Samples puts;
    TOOL_TRY(slice([&] { return path.remote.put(path.local, 0, 0, bytes); }, 1,
                   8 * plan.time / kTurns, puts));
    theirs.push_back(its);
    ours.push_back(median(puts));
    ratios.push_back(its / median(puts));
  }
  run.targets.push_back(shareTarget("ucx put " + sizeText(bytes) + " over tcp", bytes, median(ours),
                                    "ucx_perftest tag_bw", median(theirs), median(ratios)));
  return Status();
}

}  // namespace

Status measureUcxTargets(Session& session, const Plan& plan, const Step& step, Run& run) {
  auto note = [&](const Status& why) {
    run.notes.push_back("no targets of ucx: " + why.message());
    return Status();
  };
  auto path = session.path("ucx");
  if (!path.ok()) return note(path.status());
  auto address = session.order("ucp");
  if (!address.ok()) return note(address.status());
  auto bare = BareUcp::connect(*address, (*path)->local.data());
  if (!bare.ok()) return note(bare.status());
  TOOL_TRY(besideBareUcp(**path, **bare, plan, step, run));
  if ((*path)->remote.path().find("tcp/") == std::string::npos) return Status();
  if (Status status = besidePerftest(**path, plan, step, run); !status.ok()) return note(status);
  return Status();
}

}  // namespace hmc::bench
