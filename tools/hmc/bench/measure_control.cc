#include <fmt/core.h>

#include "bench/measure.h"

namespace hmc::bench {

namespace {

Status exchangeTags(Communicator& communicator, uint64_t rounds) {
  for (uint64_t i = 0; i < rounds; ++i) {
    uint64_t tag = 0;
    if (communicator.ctrlSend(kServerRank, i) != status_t::SUCCESS ||
        communicator.ctrlRecv(kServerRank, &tag) != status_t::SUCCESS) {
      return Status(Code::failed, lastError());
    }
    if (tag != i) return Status(Code::failed, fmt::format("tag {} came back as {}", i, tag));
  }
  return Status();
}

// Before the rounds that are timed, for waking up.
uint64_t warmUp(uint64_t rounds) {
  return rounds / 10 + 1;
}

// Nanoseconds per round trip.
template <class Exchange>
Result<double> timeRounds(uint64_t rounds, const Exchange& exchange) {
  TOOL_TRY(exchange(warmUp(rounds)));
  const auto start = Clock::now();
  TOOL_TRY(exchange(rounds));
  return nanosecondsSince(start) / static_cast<double>(rounds);
}

// What the server takes part in: flags and then tags, or tags alone.
Status beginRounds(Session& session, const char* what, uint32_t rank, uint64_t rounds) {
  return session.request(fmt::format("{} {} {}", what, rank, rounds + warmUp(rounds))).status();
}

Result<double> tagsNs(Session& session, Communicator& communicator, uint64_t rounds) {
  auto took = timeRounds(rounds, [&](uint64_t some) { return exchangeTags(communicator, some); });
  TOOL_TRY(session.answer().status());
  return took;
}

Result<double> flagsNs(Session& session, uint64_t rounds) {
  uint64_t done = 0;
  return timeRounds(rounds, [&](uint64_t some) {
    const bool answered = session.shared().ping(done + 1, some);
    done += some;
    return answered ? Status() : Status(Code::failed, "the server does not answer flags");
  });
}

Result<double> socketNs(Session& session, uint64_t rounds) {
  TOOL_TRY(session.socket().prepare(8, 8));
  return timeRounds(rounds, [&](uint64_t some) -> Status {
    for (uint64_t i = 0; i < some; ++i) TOOL_TRY(session.socket().exchange());
    return Status();
  });
}

}  // namespace

Result<Compared> compareTags(Session& session, const std::string& transport, Clock::duration time) {
  constexpr int kTurns = 9;
  const bool memory = transport == "ipc" && session.local();
  const uint32_t rank = session.newRank();
  TOOL_ASSIGN(auto communicator, session.communicator(rank, memory ? "ipc" : "tcp"));
  // A round trip takes some hundred nanoseconds in memory, some microseconds over a socket.
  const auto slice = std::chrono::duration<double, std::nano>(time).count() / (2 * kTurns);
  const auto rounds = static_cast<uint64_t>(slice / (memory ? 500 : 10000)) + 10;
  auto ceiling = [&]() -> Result<double> {
    if (!memory) return socketNs(session, rounds);
    session.shared().reset();
    TOOL_TRY(beginRounds(session, "flags", rank, rounds));
    return flagsNs(session, rounds);
  };
  auto ours = [&]() -> Result<double> {
    // In memory the server goes on with tags by itself.
    if (!memory) TOOL_TRY(beginRounds(session, "tags", rank, rounds));
    return tagsNs(session, *communicator, rounds);
  };
  return compareRuns(ours, ceiling, kTurns);
}

Status measureControl(Bench& bench, const std::string& transport) {
  if (!hasTags(transport, bench.session.local())) return Status();
  bench.step(transport + " tag round trips");
  TOOL_ASSIGN(Compared compared, compareTags(bench.session, transport, bench.plan.time));
  Measurement measurement = measurementOf(transport, "control", true, sizeof(uint64_t), compared);
  measurement.what = "tag round trip";
  if (transport == "ipc") {
    measurement.path = "shared memory";
    measurement.ceiling->name = "bare flag";
  }
  bench.run.measurements.push_back(measurement);
  return Status();
}

}  // namespace hmc::bench
