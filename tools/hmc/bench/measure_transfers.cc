#include <cstring>

#include <fmt/core.h>

#include "bench/measure.h"
#include "demo/demo.h"

namespace hmc::bench {

namespace {

constexpr size_t kAck = 8;

bool throughMemory(const std::string& transport) {
  return transport == "ipc";
}

// `count` transfers in flight, from the first start to the last completion: bytes that move before
// or after the clock runs are no bandwidth.
struct Window {
  OneTransfer transfer;
  size_t count;
  std::vector<Block> block;
  std::vector<Ticket> tickets;

  Status operator()() {
    tickets.clear();
    for (size_t i = 0; i < count; ++i) {
      TOOL_ASSIGN(Ticket ticket, transfer.start(block));
      tickets.push_back(std::move(ticket));
    }
    for (Ticket& ticket : tickets) TOOL_TRY(ticket.wait());
    return Status();
  }
};

// Beside a socket that sends and receives as many bytes.
template <class Ours>
Result<Compared> compareWithSocket(Session& session, Ours& ours, bool put, size_t bytes,
                                   Clock::duration time) {
  TOOL_TRY(session.socket().prepare(put ? bytes : kAck, put ? kAck : bytes));
  return compare(
      ours, [&] { return session.socket().exchange(); }, time);
}

Result<Compared> compareWindow(Session& session, Path& path, const std::string& transport, bool put,
                               size_t count, size_t bytes, Clock::duration time) {
  auto windowOn = [=](const Path& on) {
    return Window{{on, put, bytes}, count, {{0, 0, bytes}}, {}};
  };
  if (session.onDevice()) {
    return compareOnDevice(
        session, path, transport, windowOn,
        [&](BareCuda& cuda) { return cuda.copy(wayOf(path, put), bytes, count); }, time);
  }
  Window ours = windowOn(path);
  if (!throughMemory(transport)) return compareWithSocket(session, ours, put, count * bytes, time);
  const BareCopy copy = bareCopy(session, path, put, bytes);
  auto copies = [&] {
    for (size_t i = 0; i < count; ++i) TOOL_TRY(copy());
    return Status();
  };
  return compare(ours, copies, time);
}

// The spread is one of times, so a bandwidth has none.
Measurement asBandwidth(Measurement measurement, size_t count) {
  const auto bytes = static_cast<double>(count * measurement.bytes);
  measurement.unit = Unit::gigabytesPerSecond;
  measurement.value = bytes / measurement.value;
  if (measurement.ceiling) measurement.ceiling->value = bytes / measurement.ceiling->value;
  measurement.spread.reset();
  return measurement;
}

// Compares checksums of both ends after a put of everything, and after a get.
Status verify(Session& session, Path& path) {
  if (session.onDevice()) return verifyOnDevice(path);
  auto* data = static_cast<char*>(path.local.data());
  tool::fillPattern(data, path.local.size(), 7);
  const uint64_t sent = tool::checksum(data, path.local.size());
  TOOL_TRY(path.remote.put(path.local, 0, 0, path.local.size()));
  TOOL_ASSIGN(std::string arrived, session.request("sum"));
  if (arrived != std::to_string(sent))
    return Status(Code::failed, "what arrived differs from what was put");
  TOOL_ASSIGN(std::string there, session.request("fill 8"));
  TOOL_TRY(path.remote.get(path.local, 0, 0, path.local.size()));
  if (there != std::to_string(tool::checksum(data, path.local.size())))
    return Status(Code::failed, "what was got differs from what the server wrote");
  return Status();
}

}  // namespace

Measurement measurementOf(const std::string& transport, const std::string& section, bool put,
                          size_t bytes, const Compared& compared) {
  const Percentiles spread = percentiles(compared.ours);
  std::optional<Ceiling> ceiling;
  if (!compared.ceiling.empty()) {
    const char* usual = throughMemory(transport) ? "memcpy" : "raw socket";
    ceiling = {compared.against.empty() ? usual : compared.against, median(compared.ceiling)};
  }
  return {.section = section,
          .what = put ? "put" : "get",
          .path = transport,
          .bytes = bytes,
          .value = spread.p50,
          .spread = spread,
          .ceiling = ceiling};
}

BareCopy bareCopy(const Session& session, const Path& path, bool put, size_t bytes) {
  auto* there = session.shared().data();
  auto* here = static_cast<char*>(path.local.data());
  return {put ? there : here, put ? here : there, bytes, &session.shared().flag(0)};
}

Result<Compared> compareTransfer(Session& session, Path& path, const std::string& transport,
                                 bool put, size_t bytes, Clock::duration time) {
  if (session.onDevice()) {
    return compareOnDevice(
        session, path, transport,
        [=](const Path& on) {
          return OneTransfer{on, put, bytes};
        },
        [&](BareCuda& cuda) { return cuda.copy(wayOf(path, put), bytes); }, time);
  }
  OneTransfer ours{path, put, bytes};
  if (throughMemory(transport)) return compare(ours, bareCopy(session, path, put, bytes), time);
  return compareWithSocket(session, ours, put, bytes, time);
}

Result<Compared> compareBatch(Session& session, Path& path, const std::string& transport,
                              size_t count, size_t bytes, Clock::duration time) {
  std::vector<Block> blocks;
  for (size_t i = 0; i < count; ++i) blocks.push_back({i * bytes, i * bytes, bytes});
  auto batchOn = [&](const Path& on) {
    return [&]() -> Status {
      TOOL_ASSIGN(Ticket ticket, on.remote.startPut(on.local, blocks));
      return ticket.wait();
    };
  };
  if (session.onDevice()) {
    return compareOnDevice(
        session, path, transport, batchOn,
        [&](BareCuda& cuda) { return cuda.copy(wayOf(path, true), count * bytes); }, time);
  }
  auto ours = batchOn(path);
  if (!throughMemory(transport)) return compareWithSocket(session, ours, true, count * bytes, time);
  auto copies = [&] {
    BareCopy copy = bareCopy(session, path, true, bytes);
    for (size_t i = 0; i < count; ++i, copy.to += bytes, copy.from += bytes) TOOL_TRY(copy());
    return Status();
  };
  return compare(ours, copies, time);
}

Status measureTransfers(Bench& bench, const std::string& transport) {
  Session& session = bench.session;
  const Plan& plan = bench.plan;
  TOOL_ASSIGN(auto path, session.path(transport));
  if (plan.verify) {
    bench.step(transport + " verified");
    TOOL_TRY(verify(session, *path));
  }
  for (bool put : {true, false}) {
    for (size_t bytes : plan.sizes) {
      bench.step(fmt::format("{} {} of {} bytes", transport, put ? "put" : "get", bytes));
      TOOL_ASSIGN(Compared latency,
                  compareTransfer(session, *path, transport, put, bytes, plan.time));
      bench.run.measurements.push_back(
          measurementOf(transport, kLatencySection, put, bytes, latency));
    }
    for (size_t bytes : plan.sizes) {
      bench.step(fmt::format("{} {} of {} bytes, {} in flight", transport, put ? "put" : "get",
                             bytes, plan.window));
      const size_t count = windowOf(plan, bytes);
      TOOL_ASSIGN(Compared compared,
                  compareWindow(session, *path, transport, put, count, bytes, plan.time));
      bench.run.measurements.push_back(
          asBandwidth(measurementOf(transport, kBandwidthSection, put, bytes, compared), count));
    }
  }
  return Status();
}

Status measureBatches(Bench& bench, const std::string& transport) {
  TOOL_ASSIGN(auto path, bench.session.path(transport));
  for (const size_t bytes : kBatchBlocks) {
    if (kBlocksOfBatch * bytes > path->local.size()) break;
    bench.step(fmt::format("{} {} blocks of {} bytes", transport, kBlocksOfBatch, bytes));
    TOOL_ASSIGN(Compared batch, compareBatch(bench.session, *path, transport, kBlocksOfBatch, bytes,
                                             bench.plan.time));
    bench.run.measurements.push_back(
        measurementOf(transport, fmt::format("batch of {} blocks in one put", kBlocksOfBatch), true,
                      bytes, batch));
  }
  return Status();
}

}  // namespace hmc::bench
