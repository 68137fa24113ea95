#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/core.h>

#include "bench/pool/rows.h"
#include "bench/pool/smem_rank.h"
#include "bench/report/units.h"
#include "bench/targets.h"
#include "hmc/store.h"
#include "peer_options.h"

namespace hmc::bench {

namespace {

constexpr uint32_t kRanks = 8;
constexpr int kMeetTurns = 5;
constexpr std::chrono::seconds kEndTimeout{60};
using What = SmemRank::What;

// Rank 0, and seven processes that do what it says.
struct Ranks {
  static Result<Ranks> start() {
    // Its secret, and the ranks', is that of the environment.
    TOOL_ASSIGN(StoreServer store, StoreServer::start());
    TOOL_ASSIGN(auto first, SmemRank::open(store.address(), kRanks, 0));
    std::vector<tool::OtherProcess> others;
    for (uint32_t rank = 1; rank < kRanks; ++rank) {
      TOOL_ASSIGN(auto other, tool::startOtherProcess(
                                  {"bench-pool-rank", "--store", store.address(), "--rank",
                                   std::to_string(rank), "--ranks", std::to_string(kRanks)}));
      others.push_back(std::move(other));
    }
    TOOL_TRY(first->meet());
    return Ranks{std::move(store), std::move(first), std::move(others)};
  }
  // Nanoseconds for each.
  Result<double> time(What what, uint32_t count) {
    TOOL_TRY(first->give({what, count}));
    const auto start = Clock::now();
    TOOL_TRY(first->perform({what, count}));
    return nanosecondsSince(start) / count;
  }
  // Those that are killed before they heard of it would complain.
  Status end() {
    TOOL_TRY(first->give({What::end, 0}));
    for (auto& other : others) TOOL_TRY(other.program->finish(kEndTimeout).status());
    return Status();
  }
  // How many are done in that time.
  Result<uint32_t> countFor(What what, Clock::duration length) {
    constexpr uint32_t kFirst = 10;
    TOOL_ASSIGN(const double each, time(what, kFirst));
    const double nanoseconds = std::chrono::duration<double, std::nano>(length).count();
    return static_cast<uint32_t>(std::clamp(nanoseconds / each, 10.0, 1e6));
  }

  StoreServer store;
  std::unique_ptr<SmemRank> first;
  std::vector<tool::OtherProcess> others;
};

// On fewer cores than ranks they wait for each other's cores.
bool everyRankHasACore() {
  return usableCores() >= kRanks;
}
std::string coresText() {
  return fmt::format("{} cores for {} ranks", usableCores(), kRanks);
}

// A limit for machines with a core for each rank. Elsewhere the row says so, and nothing is judged.
Target onEnoughCores(Target target) {
  if (everyRankHasACore()) return target;
  target.against += (target.against.empty() ? "" : ", ") + coresText();
  target.compared = false;
  target.met = false;
  return target;
}

Result<Compared> besideRoundTrip(PoolBench& bench, Ranks& ranks, What what) {
  const Clock::duration length = bench.time / (2 * kMeetTurns);
  TOOL_ASSIGN(const uint32_t count, ranks.countFor(what, length));
  return compareRuns([&] { return ranks.time(what, count); },
                     [&]() -> Result<double> {
                       TOOL_ASSIGN(const StoreLoad load,
                                   loadStore({"ours", ranks.store.address(),
                                              tool::optionsFromEnvironment("").secret},
                                             1, length));
                       return load.get;
                     },
                     kMeetTurns);
}

// Requests that each rank makes for one of them.
Result<double> requestsOf(Ranks& ranks, What what) {
  constexpr uint32_t kCount = 100;
  const uint64_t before = ranks.store.requests();
  TOOL_TRY(ranks.time(what, kCount).status());
  return static_cast<double>(ranks.store.requests() - before) / kCount / kRanks;
}

Target roundTripsTarget(std::string what, const Compared& compared) {
  return timeAtMost(std::move(what), compared, "store round trip", 10);
}

Target requestsTarget(std::string what, double requests) {
  constexpr double kMost = 10;
  return {std::move(what), fmt::format("{:.1f}", requests), "",
          requests,        fmt::format("<= {:.0f}", kMost), requests <= kMost};
}

Status barriers(PoolBench& bench, Ranks& ranks) {
  auto& targets = bench.run.targets;
  const std::string what = fmt::format("barrier of {} ranks", kRanks);
  bench.step(what);
  TOOL_ASSIGN(const Compared here, besideRoundTrip(bench, ranks, What::barrier));
  constexpr double kMostMicros = 20;
  const double micros = median(here.ours) / 1e3;
  targets.push_back(
      onEnoughCores({what, timeText(median(here.ours)), "", micros,
                     fmt::format("<= {:.0f} us", kMostMicros), micros <= kMostMicros}));
  targets.push_back(roundTripsTarget(what + ", by store round trips", here));
  TOOL_ASSIGN(const double asked, requestsOf(ranks, What::barrier));
  targets.push_back(requestsTarget(what + ": store requests of each", asked));

  const std::string throughStore = what + " through the store";
  bench.step(throughStore);
  TOOL_ASSIGN(const Compared there, besideRoundTrip(bench, ranks, What::barrierThroughStore));
  targets.push_back(onEnoughCores(roundTripsTarget(throughStore, there)));
  TOOL_ASSIGN(const double requests, requestsOf(ranks, What::barrierThroughStore));
  targets.push_back(requestsTarget(throughStore + ": requests of each", requests));
  return Status();
}

// What each rank receives, and what all of them do, beside a socket that moves as many bytes.
Status allgathers(PoolBench& bench, Ranks& ranks) {
  const std::string what =
      fmt::format("allgather of {} from {} ranks", sizeText(kShareBytes), kRanks);
  bench.step(what);
  SessionOptions options;
  options.bytes = kMiB;
  TOOL_ASSIGN(auto session, Session::open(options));
  const Clock::duration length = bench.time / (2 * kMeetTurns);
  TOOL_ASSIGN(const uint32_t count, ranks.countFor(What::allgather, length));
  const size_t toOne = size_t{kRanks - 1} * kShareBytes;
  for (const bool together : {false, true}) {
    const size_t bytes = together ? kRanks * toOne : toOne;
    TOOL_TRY(session->socket().prepare(bytes, 1));
    auto socket = [&]() -> Result<double> {
      Samples times;
      TOOL_TRY(slice([&] { return session->socket().exchange(); }, 1, length, times));
      return median(times);
    };
    TOOL_ASSIGN(
        const Compared compared,
        compareRuns([&] { return ranks.time(What::allgather, count); }, socket, kMeetTurns));
    Target target = rateAtLeast(what + (together ? ", all together" : ", each"), compared,
                                "raw socket", 0.5, bandwidthOf(bytes));
    bench.run.targets.push_back(together ? target : onEnoughCores(target));
  }
  return Status();
}

}  // namespace

Status measurePoolCollectives(PoolBench& bench) {
  auto ranks = Ranks::start();
  if (!ranks.ok() && ranks.status().code() != Code::notFound) return ranks.status();
  if (!ranks.ok()) {
    // The rows are there all the same, so that nobody takes what is missing for met.
    for (const char* what : {"barrier", "allgather"}) {
      bench.step(what);
      bench.run.targets.push_back({fmt::format("{} of {} ranks", what, kRanks), "-", "",
                                   std::numeric_limits<double>::quiet_NaN(), "-", false, false});
    }
    bench.run.notes.push_back("barrier, allgather: not measured: " + ranks.status().message());
    return Status();
  }
  TOOL_TRY(barriers(bench, *ranks));
  TOOL_TRY(allgathers(bench, *ranks));
  return ranks->end();
}

int servePoolRank(const PoolRankOptions& options) {
  auto rank = SmemRank::open(options.store, options.ranks, options.rank);
  if (!tool::tellParent(rank.ok() ? Result<std::string>("ready") : rank.status())) return 1;
  auto obey = [&]() -> Status {
    TOOL_TRY((*rank)->meet());
    for (;;) {
      TOOL_ASSIGN(const SmemRank::Order order, (*rank)->take());
      if (order.what == What::end) return Status();
      TOOL_TRY((*rank)->perform(order));
    }
  };
  const Status status = obey();
  if (!status.ok()) fmt::print(stderr, "hmc: {}\n", status.message());
  return status.ok() ? 0 : 1;
}

}  // namespace hmc::bench
