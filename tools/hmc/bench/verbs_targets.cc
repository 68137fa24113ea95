#include "bench/verbs_targets.h"

#include <algorithm>
#include <deque>

#include <fmt/core.h>

#include "bench/against/perftest.h"
#include "bench/report/units.h"

namespace hmc::bench {

namespace {

constexpr const char* kTransport = "verbs";
constexpr size_t kKiB = 1024;
constexpr size_t kSmall = 8;
constexpr size_t kBatch = 10000;
// Of a batch of small puts: as many as the transport has under way on one queue pair.
constexpr size_t kBatchDepth = 256;

// A program cannot be halted and resumed as our own ceilings are, so a turn is a whole run of it:
// few turns, and the median of their ratios. Both jobs answer nanoseconds per message.
template <class Ours, class Theirs>
Result<Compared> takeTurns(Ours&& ours, Theirs&& theirs) {
  constexpr int kTurns = 3;
  Compared all;
  Samples ratios;
  TOOL_TRY(ours().status());  // warm
  for (int i = 0; i < kTurns; ++i) {
    TOOL_ASSIGN(const double their, theirs());
    TOOL_ASSIGN(const double our, ours());
    all.ceiling.push_back(their);
    all.ours.push_back(our);
    ratios.push_back(our / their);
  }
  all.ratio = median(ratios);
  return all;
}

// What a job takes per message.
template <class Job>
Result<double> timed(Job&& job, size_t messages) {
  const auto start = Clock::now();
  TOOL_TRY(job());
  return std::chrono::duration<double, std::nano>(Clock::now() - start).count() /
         static_cast<double>(messages);
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

// `depth` transfers are under way all the time, as in perftest: the next one starts when the oldest
// has arrived.
Status stream(const Path& path, bool put, size_t bytes, size_t messages, size_t depth) {
  const std::vector<Block> block{{0, 0, bytes}};
  std::deque<Ticket> underWay;
  for (size_t i = 0; i < messages; ++i) {
    if (underWay.size() == depth) {
      TOOL_TRY(underWay.front().wait());
      underWay.pop_front();
    }
    TOOL_ASSIGN(Ticket ticket, put ? path.remote.startPut(path.local, block)
                                   : path.remote.startGet(path.local, block));
    underWay.push_back(std::move(ticket));
  }
  for (Ticket& ticket : underWay) TOOL_TRY(ticket.wait());
  return Status();
}

// Shares of a rate, so that more is better.
Target atLeast(std::string what, const Compared& compared, const std::string& program, double limit,
               const std::function<std::string(double)>& text) {
  const double share = 1 / compared.ratio;
  return {std::move(what),
          text(median(compared.ours)),
          fmt::format("{} {}", program, text(median(compared.ceiling))),
          share,
          fmt::format(">= {} x", limit),
          share >= limit};
}

Status streamed(const Path& path, const RdmaAddress& address, bool put, size_t bytes,
                const Plan& plan, Run& run) {
  auto ours = [&](size_t messages) {
    return timed([&] { return stream(path, put, bytes, messages, plan.window); }, messages);
  };
  TOOL_ASSIGN(const size_t messages, messagesFor(ours, plan.window, plan.time));
  const PerftestRun theirs{.program = put ? kWriteBandwidth : kReadBandwidth,
                           .bytes = bytes,
                           .messages = messages,
                           .depth = plan.window};
  TOOL_ASSIGN(const Compared compared,
              takeTurns([&] { return ours(messages); },
                        [&] { return perftestPerMessage(address, theirs); }));
  run.targets.push_back(atLeast(
      fmt::format("verbs {} {}", put ? "put" : "get", sizeText(bytes)), compared, theirs.program,
      0.95, [&](double each) { return speedText(static_cast<double>(bytes) / each); }));
  return Status();
}

Status smallPut(const Path& path, const RdmaAddress& address, const Plan& plan, Run& run) {
  auto once = [&] { return path.remote.put(path.local, 0, 0, kSmall); };
  // The median of single puts, as perftest's "typical".
  auto ours = [&]() -> Result<double> {
    Samples samples;
    TOOL_TRY(slice(once, 1, plan.time, samples));
    return median(samples);
  };
  auto single = [&](size_t) { return ours(); };
  TOOL_ASSIGN(const size_t messages, messagesFor(single, 100, plan.time));
  auto roundTrip = [&]() -> Result<double> {
    TOOL_ASSIGN(const Percentiles half,
                perftestLatency(address,
                                {.program = kWriteLatency, .bytes = kSmall, .messages = messages}));
    return 2 * half.p50;
  };
  TOOL_ASSIGN(const Compared compared, takeTurns(ours, roundTrip));
  run.targets.push_back(
      {"verbs put 8 B", timeText(median(compared.ours)),
       fmt::format("{} there and back {}", kWriteLatency, timeText(median(compared.ceiling))),
       compared.ratio, "<= 1.3 x", compared.ratio <= 1.3});
  return Status();
}

Status smallBatch(const Path& path, const RdmaAddress& address, Run& run) {
  std::vector<Block> blocks;
  for (size_t i = 0; i < kBatch; ++i) blocks.push_back({i * kSmall, i * kSmall, kSmall});
  auto put = [&]() -> Status {
    TOOL_ASSIGN(Ticket ticket, path.remote.startPut(path.local, blocks));
    return ticket.wait();
  };
  const PerftestRun theirs{
      .program = kWriteBandwidth, .bytes = kSmall, .messages = kBatch, .depth = kBatchDepth};
  TOOL_ASSIGN(const Compared compared,
              takeTurns([&] { return timed(put, kBatch); },
                        [&] { return perftestPerMessage(address, theirs); }));
  run.targets.push_back(atLeast(fmt::format("verbs {} puts of 8 B in one batch", kBatch), compared,
                                theirs.program, 0.9,
                                [](double each) { return timeText(each) + " each"; }));
  return Status();
}

}  // namespace

Status measureVerbsTargets(Session& session, const Plan& plan, const Step& step, Run& run) {
  auto address = findRdmaAddress();
  Status can = findPerftest();
  if (can.ok()) can = address.status();
  if (!can.ok()) {
    run.notes.push_back("verbs: the targets were not measured: " + can.message());
    return Status();
  }
  TOOL_ASSIGN(auto path, session.path(kTransport));
  step("verbs put 8 B");
  TOOL_TRY(smallPut(*path, *address, plan, run));
  for (bool put : {true, false}) {
    for (size_t bytes : {64 * kKiB, 1024 * kKiB}) {
      step(fmt::format("verbs {} {}", put ? "put" : "get", sizeText(bytes)));
      TOOL_TRY(streamed(*path, *address, put, bytes, plan, run));
    }
  }
  step("verbs batch of small puts");
  return smallBatch(*path, *address, run);
}

}  // namespace hmc::bench
