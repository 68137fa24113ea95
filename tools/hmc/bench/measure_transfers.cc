#include <algorithm>
#include <cstring>

#include <fmt/core.h>

#include "bench/measure.h"
#include "demo/demo.h"

namespace hmc::bench {

namespace {

constexpr size_t kAck = 8;
constexpr size_t kMostUnderWay = size_t{64} << 20;  // bytes

bool throughMemory(const std::string& transport) {
  return transport == "ipc";
}

// A bare put: the bytes, then the flag that says so.
struct BareCopy {
  char* to;
  const char* from;
  size_t bytes;
  std::atomic<uint64_t>* flag;

  Status operator()() const {
    std::memcpy(to, from, bytes);
    flag->store(1, std::memory_order_release);
    return Status();
  }
};

BareCopy bareCopy(const Session& session, const Path& path, bool put, size_t bytes) {
  auto* there = session.lines().data();
  auto* here = static_cast<char*>(path.local.data());
  return {put ? there : here, put ? here : there, bytes, &session.lines().flag(0)};
}

struct OneTransfer {
  const Path& path;
  bool put;
  size_t bytes;

  Status operator()() const {
    return put ? path.remote.put(path.local, 0, 0, bytes)
               : path.remote.get(path.local, 0, 0, bytes);
  }
};

// `count` transfers under way at once, to the last one: what a transport gets done ahead of the
// clock, or after it, would be no bandwidth.
struct Window {
  const Path& path;
  bool put;
  size_t count;
  std::vector<Block> block;
  std::vector<Ticket> tickets;

  Status operator()() {
    tickets.clear();
    for (size_t i = 0; i < count; ++i) {
      TOOL_ASSIGN(Ticket ticket, put ? path.remote.startPut(path.local, block)
                                     : path.remote.startGet(path.local, block));
      tickets.push_back(std::move(ticket));
    }
    for (Ticket& ticket : tickets) TOOL_TRY(ticket.wait());
    return Status();
  }
};

Result<Compared> compareWindow(Session& session, Path& path, const std::string& transport, bool put,
                               size_t count, size_t bytes, Clock::duration time) {
  Window ours{path, put, count, {{0, 0, bytes}}, {}};
  if (!throughMemory(transport)) {
    TOOL_TRY(session.socket().prepare(put ? count * bytes : kAck, put ? kAck : count * bytes));
    return compare(
        ours, [&] { return session.socket().exchange(); }, time);
  }
  const BareCopy copy = bareCopy(session, path, put, bytes);
  auto copies = [&] {
    for (size_t i = 0; i < count; ++i) TOOL_TRY(copy());
    return Status();
  };
  return compare(ours, copies, time);
}

double gigabytesPerSecond(size_t bytes, double nanoseconds) {
  return static_cast<double>(bytes) / nanoseconds;
}

// A bandwidth is no spread of times.
Measurement asBandwidth(Measurement measurement, size_t count) {
  measurement.unit = Unit::gigabytesPerSecond;
  measurement.value = gigabytesPerSecond(count * measurement.bytes, measurement.value);
  measurement.ceiling->value =
      gigabytesPerSecond(count * measurement.bytes, measurement.ceiling->value);
  measurement.spread.reset();
  return measurement;
}

// What was put is what is there; what is there is what is got.
Status verify(Session& session, Path& path) {
  auto* data = static_cast<char*>(path.local.data());
  tool::fillPattern(data, path.local.size(), 7);
  const uint64_t sent = tool::checksum(data, path.local.size());
  TOOL_TRY(path.remote.put(path.local, 0, 0, path.local.size()));
  TOOL_ASSIGN(std::string arrived, session.order("sum"));
  if (arrived != std::to_string(sent))
    return Status(Code::failed, "what arrived is not what was put");
  TOOL_ASSIGN(std::string there, session.order("fill 8"));
  TOOL_TRY(path.remote.get(path.local, 0, 0, path.local.size()));
  if (there != std::to_string(tool::checksum(data, path.local.size())))
    return Status(Code::failed, "what was got is not what is there");
  return Status();
}

}  // namespace

Measurement measurementOf(const std::string& transport, const std::string& section, bool put,
                          size_t bytes, const Compared& compared) {
  Measurement measurement;
  measurement.section = section;
  measurement.what = put ? "put" : "get";
  measurement.path = transport;
  measurement.bytes = bytes;
  measurement.spread = percentiles(compared.ours);
  measurement.value = measurement.spread->p50;
  measurement.ceiling = Ceiling{ceilingName(transport), median(compared.ceiling)};
  return measurement;
}

std::string ceilingName(const std::string& transport) {
  return throughMemory(transport) ? "memcpy" : "raw socket";
}

Result<Compared> compareTransfer(Session& session, Path& path, const std::string& transport,
                                 bool put, size_t bytes, Clock::duration time) {
  OneTransfer ours{path, put, bytes};
  if (throughMemory(transport)) return compare(ours, bareCopy(session, path, put, bytes), time);
  TOOL_TRY(session.socket().prepare(put ? bytes : kAck, put ? kAck : bytes));
  return compare(
      ours, [&] { return session.socket().exchange(); }, time);
}

Result<Compared> compareBatch(Session& session, Path& path, const std::string& transport,
                              size_t count, size_t bytes, Clock::duration time) {
  std::vector<Block> blocks;
  for (size_t i = 0; i < count; ++i) blocks.push_back({i * bytes, i * bytes, bytes});
  auto ours = [&] {
    TOOL_ASSIGN(Ticket ticket, path.remote.startPut(path.local, blocks));
    return ticket.wait();
  };
  if (!throughMemory(transport)) {
    TOOL_TRY(session.socket().prepare(count * bytes, kAck));
    return compare(
        ours, [&] { return session.socket().exchange(); }, time);
  }
  auto copies = [&] {
    BareCopy copy = bareCopy(session, path, true, bytes);
    for (size_t i = 0; i < count; ++i, copy.to += bytes, copy.from += bytes) TOOL_TRY(copy());
    return Status();
  };
  return compare(ours, copies, time);
}

Status measureTransfers(Session& session, const std::string& transport, const Plan& plan,
                        const Step& step, Run& run) {
  TOOL_ASSIGN(auto path, session.path(transport));
  if (plan.verify) {
    step(transport + " verified");
    TOOL_TRY(verify(session, *path));
  }
  for (bool put : {true, false}) {
    for (size_t bytes : plan.sizes) {
      step(fmt::format("{} {} of {} bytes", transport, put ? "put" : "get", bytes));
      TOOL_ASSIGN(Compared latency,
                  compareTransfer(session, *path, transport, put, bytes, plan.time));
      run.measurements.push_back(measurementOf(transport, kLatencySection, put, bytes, latency));
    }
    for (size_t bytes : plan.sizes) {
      step(fmt::format("{} {} of {} bytes, {} under way", transport, put ? "put" : "get", bytes,
                       plan.window));
      const size_t count = std::clamp<size_t>(kMostUnderWay / bytes, 1, plan.window);
      TOOL_ASSIGN(Compared compared,
                  compareWindow(session, *path, transport, put, count, bytes, plan.time));
      run.measurements.push_back(
          asBandwidth(measurementOf(transport, kBandwidthSection, put, bytes, compared), count));
    }
  }
  return Status();
}

Status measureBatches(Session& session, const std::string& transport, const Plan& plan,
                      const Step& step, Run& run) {
  constexpr size_t kBlocks = 256;
  TOOL_ASSIGN(auto path, session.path(transport));
  for (size_t bytes :
       {size_t{64}, size_t{1} << 10, size_t{4} << 10, size_t{16} << 10, size_t{64} << 10}) {
    if (kBlocks * bytes > path->local.size()) break;
    step(fmt::format("{} {} blocks of {} bytes", transport, kBlocks, bytes));
    TOOL_ASSIGN(Compared batch, compareBatch(session, *path, transport, kBlocks, bytes, plan.time));
    Measurement measurement = measurementOf(
        transport, fmt::format("batch of {} blocks in one put", kBlocks), true, bytes, batch);
    run.measurements.push_back(measurement);
  }
  return Status();
}

}  // namespace hmc::bench
