#include <fmt/core.h>

#include "bench/pool/rows.h"
#include "bench/report/units.h"

namespace hmc::bench {

namespace {

constexpr size_t kPresent = 8;  // members while others join and leave
constexpr int kRounds = 20;     // of join and leave
constexpr int kKills = 5;
const PoolMemberOptions kCrowd{"", "crowd", 2 * kMiB, "", Device()};

Target within(std::string what, const Samples& times, double limitMs) {
  Target target;
  target.what = std::move(what);
  target.measured = timeText(median(times));
  target.ratio = median(times) / 1e6;
  target.limit = fmt::format("<= {:.0f} ms", limitMs);
  target.met = target.ratio <= limitMs;
  return target;
}

Status joinsAndLeaves(PoolBench& bench) {
  for (size_t i = 0; i < kPresent; ++i) TOOL_TRY(bench.others.add(kCrowd));
  Samples joins;
  Samples leaves;
  bench.step(fmt::format("join and leave with {} members", kPresent));
  for (int i = 0; i < kRounds; ++i) {
    auto start = Clock::now();
    TOOL_ASSIGN(auto pool, Pool::join(bench.others.store.address, poolOptions(kCrowd)));
    joins.push_back(nanosecondsSince(start));
    start = Clock::now();
    TOOL_TRY(pool.leave());
    leaves.push_back(nanosecondsSince(start));
  }
  bench.run.targets.push_back(within(fmt::format("join with {} members", kPresent), joins, 20));
  bench.run.targets.push_back(within(fmt::format("leave with {} members", kPresent), leaves, 20));
  return Status();
}

// Waits for a member to come or go.
Status awaitEvent(Pool& pool, PoolEvent::Kind kind, uint32_t rank) {
  while (true) {
    TOOL_ASSIGN(const PoolEvent event, pool.nextEvent());
    if (event.kind == kind && event.rank == rank) return Status();
  }
}

Status kills(PoolBench& bench) {
  bench.step("a killed member is noticed");
  TOOL_ASSIGN(auto pool, Pool::join(bench.others.store.address, poolOptions(kCrowd)));
  Samples times;
  for (int i = 0; i < kKills; ++i) {
    TOOL_TRY(bench.others.add(kCrowd));
    const uint32_t rank = bench.others.rankOfLast();
    TOOL_TRY(awaitEvent(pool, PoolEvent::Kind::joined, rank));
    const auto start = Clock::now();
    bench.others.members.pop_back();
    TOOL_TRY(awaitEvent(pool, PoolEvent::Kind::left, rank));
    times.push_back(nanosecondsSince(start));
  }
  bench.run.targets.push_back(within("a killed member is noticed", times, 100));
  return Status();
}

}  // namespace

Status measurePoolMembers(PoolBench& bench) {
  TOOL_TRY(joinsAndLeaves(bench));
  return kills(bench);
}

}  // namespace hmc::bench
