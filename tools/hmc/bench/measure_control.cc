#include <fmt/core.h>

#include "bench/measure.h"

namespace hmc::bench {

namespace {

constexpr size_t kSlices = 9;

Samples timeRounds(uint64_t rounds, Clock::time_point start) {
  return {std::chrono::duration<double, std::nano>(Clock::now() - start).count() /
          static_cast<double>(rounds)};
}

Status playTags(Communicator& communicator, uint64_t rounds) {
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

// The first tenth is for waking up.
Result<double> tagsNs(Session& session, Communicator& communicator, uint32_t rank,
                      uint64_t rounds) {
  const uint64_t warm = rounds / 10 + 1;
  TOOL_TRY(session.begin(fmt::format("tags {} {}", rank, rounds + warm)));
  TOOL_TRY(playTags(communicator, warm));
  auto start = Clock::now();
  TOOL_TRY(playTags(communicator, rounds));
  double took = timeRounds(rounds, start).front();
  TOOL_TRY(session.finish());
  return took;
}

Result<double> flagsNs(Session& session, uint64_t rounds) {
  session.lines().reset();
  TOOL_TRY(session.begin(fmt::format("pong {}", rounds)));
  auto start = Clock::now();
  if (!session.lines().ping(rounds)) return Status(Code::failed, "the server plays no ping-pong");
  double took = timeRounds(rounds, start).front();
  TOOL_TRY(session.finish());
  return took;
}

Result<double> socketNs(Session& session, uint64_t rounds) {
  TOOL_TRY(session.socket().prepare(8, 8));
  for (uint64_t i = 0; i < rounds / 10 + 1; ++i) TOOL_TRY(session.socket().exchange());
  auto start = Clock::now();
  for (uint64_t i = 0; i < rounds; ++i) TOOL_TRY(session.socket().exchange());
  return timeRounds(rounds, start).front();
}

}  // namespace

Result<Compared> compareTags(Session& session, const std::string& transport, Clock::duration time) {
  const bool memory = transport == "ipc" && session.local();
  const uint32_t rank = session.newRank();
  TOOL_ASSIGN(auto communicator, session.communicator(rank, memory ? "ipc" : "tcp"));
  // A round trip is some hundred nanoseconds in memory, some microseconds over a socket.
  const auto slice = std::chrono::duration<double, std::nano>(time).count() / (2 * kSlices);
  const auto rounds = static_cast<uint64_t>(slice / (memory ? 500 : 10000)) + 10;
  Compared all;
  Samples ratios;
  for (size_t i = 0; i <= kSlices; ++i) {
    TOOL_ASSIGN(double ceiling, memory ? flagsNs(session, rounds) : socketNs(session, rounds));
    TOOL_ASSIGN(double ours, tagsNs(session, *communicator, rank, rounds));
    if (i == 0) continue;
    all.ceiling.push_back(ceiling);
    all.ours.push_back(ours);
    ratios.push_back(ours / ceiling);
  }
  all.ratio = median(ratios);
  return all;
}

Status measureControl(Session& session, const std::string& transport, const Plan& plan,
                      const Step& step, Run& run) {
  // Where there are no shared lines to compare with, tags in memory have no ceiling.
  if (transport != "tcp" && !(transport == "ipc" && session.local())) return Status();
  step(transport + " tags there and back");
  TOOL_ASSIGN(Compared compared, compareTags(session, transport, plan.time));
  Measurement measurement;
  measurement.section = "control";
  measurement.what = "tag round trip";
  measurement.path = transport == "ipc" ? "shared memory" : "tcp";
  measurement.bytes = sizeof(uint64_t);
  measurement.spread = percentiles(compared.ours);
  measurement.value = measurement.spread->p50;
  measurement.ceiling =
      Ceiling{transport == "ipc" ? "bare flag" : "raw socket", median(compared.ceiling)};
  run.measurements.push_back(measurement);
  return Status();
}

}  // namespace hmc::bench
