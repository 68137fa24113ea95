#include <algorithm>
#include <deque>

#include <fmt/core.h>

#include "bench/against/perftest.h"
#include "bench/report/units.h"
#include "bench/targets.h"

namespace hmc::bench {

namespace {

constexpr size_t kSmall = 8;
constexpr int kTurns = 3;

// What a job takes per message.
template <class Job>
Result<double> timed(Job&& job, size_t messages) {
  const auto start = Clock::now();
  TOOL_TRY(job());
  return nanosecondsSince(start) / static_cast<double>(messages);
}

// As many messages as fill the time, and enough to be worth the start of a program.
Result<size_t> messagesFor(const std::function<Result<double>(size_t)>& perMessage, size_t few,
                           Clock::duration time) {
  constexpr size_t kMost = 100000;
  TOOL_ASSIGN(const double each, perMessage(few));
  const double wanted = std::chrono::duration<double, std::nano>(time).count() / each;
  return static_cast<size_t>(
      std::clamp(wanted, static_cast<double>(few), static_cast<double>(kMost)));
}

// Keeps `depth` transfers in flight, as perftest does: the next one starts when the oldest has
// completed.
Status stream(const OneTransfer& transfer, size_t messages, size_t depth) {
  const std::vector<Block> block{{0, 0, transfer.bytes}};
  std::deque<Ticket> inFlight;
  for (size_t i = 0; i < messages; ++i) {
    if (inFlight.size() == depth) {
      TOOL_TRY(inFlight.front().wait());
      inFlight.pop_front();
    }
    TOOL_ASSIGN(Ticket ticket, transfer.start(block));
    inFlight.push_back(std::move(ticket));
  }
  for (Ticket& ticket : inFlight) TOOL_TRY(ticket.wait());
  return Status();
}

Status streamed(Bench& bench, const Path& path, const RdmaAddress& address, bool put,
                size_t bytes) {
  const Plan& plan = bench.plan;
  const std::string what = fmt::format("verbs {} {}", put ? "put" : "get", sizeText(bytes));
  bench.step(what);
  auto ours = [&](size_t messages) {
    return timed([&] { return stream({path, put, bytes}, messages, plan.window); }, messages);
  };
  TOOL_ASSIGN(const size_t messages, messagesFor(ours, plan.window, plan.time));
  const PerftestRun theirs{.program = put ? kWriteBandwidth : kReadBandwidth,
                           .bytes = bytes,
                           .messages = messages,
                           .depth = plan.window};
  TOOL_ASSIGN(const Compared compared,
              compareRuns([&] { return ours(messages); },
                          [&] { return perftestPerMessage(address, theirs); }, kTurns));
  bench.run.targets.push_back(
      rateAtLeast(what, compared, theirs.program, 0.95, bandwidthOf(bytes)));
  return Status();
}

Status smallPut(Bench& bench, const Path& path, const RdmaAddress& address) {
  bench.step("verbs put 8 B");
  // The median of single puts, like perftest's "typical".
  auto ours = [&]() -> Result<double> {
    Samples samples;
    TOOL_TRY(slice(OneTransfer{path, true, kSmall}, 1, bench.plan.time, samples));
    return median(samples);
  };
  auto single = [&](size_t) { return ours(); };
  TOOL_ASSIGN(const size_t messages, messagesFor(single, 100, bench.plan.time));
  auto roundTrip = [&]() -> Result<double> {
    TOOL_ASSIGN(const Percentiles half,
                perftestLatency(address,
                                {.program = kWriteLatency, .bytes = kSmall, .messages = messages}));
    return 2 * half.p50;
  };
  TOOL_ASSIGN(const Compared compared, compareRuns(ours, roundTrip, kTurns));
  bench.run.targets.push_back(
      timeAtMost("verbs put 8 B", compared, std::string(kWriteLatency) + " round trip", 1.3));
  return Status();
}

Status smallBatch(Bench& bench, const Path& path, const RdmaAddress& address) {
  constexpr size_t kBatch = 10000;
  constexpr size_t kDepth = 256;  // as many as the transport has in flight on one queue pair
  std::vector<Block> blocks;
  for (size_t i = 0; i < kBatch; ++i) blocks.push_back({i * kSmall, i * kSmall, kSmall});
  auto put = [&]() -> Status {
    TOOL_ASSIGN(Ticket ticket, path.remote.startPut(path.local, blocks));
    return ticket.wait();
  };
  const PerftestRun theirs{
      .program = kWriteBandwidth, .bytes = kSmall, .messages = kBatch, .depth = kDepth};
  TOOL_ASSIGN(const Compared compared,
              compareRuns([&] { return timed(put, kBatch); },
                          [&] { return perftestPerMessage(address, theirs); }, kTurns));
  bench.run.targets.push_back(rateAtLeast(fmt::format("verbs {} puts of 8 B in one batch", kBatch),
                                          compared, theirs.program, 0.9,
                                          [](double each) { return timeText(each) + " each"; }));
  return Status();
}

}  // namespace

Status measureVerbsTargets(Bench& bench) {
  auto address = findRdmaAddress();
  Status can = findPerftest();
  if (can.ok()) can = address.status();
  if (!can.ok()) {
    bench.run.notes.push_back("verbs: the targets were not measured: " + can.message());
    return Status();
  }
  TOOL_ASSIGN(auto path, bench.session.path("verbs"));
  TOOL_TRY(smallPut(bench, *path, *address));
  for (bool put : {true, false}) {
    for (size_t bytes : {64 * kKiB, kMiB}) TOOL_TRY(streamed(bench, *path, *address, put, bytes));
  }
  bench.step("verbs batch of small puts");
  return smallBatch(bench, *path, *address);
}

}  // namespace hmc::bench
