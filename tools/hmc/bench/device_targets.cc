#include <algorithm>
#include <numeric>
#include <random>

#include <fmt/core.h>

#include "bench/report/units.h"
#include "bench/targets.h"

// Memory of a device to the other process's memory of that device, and to its host memory.
namespace hmc::bench {

namespace {

constexpr const char* kDeviceRegion = "bench.target";
constexpr const char* kLargeRegion = "bench.large";

enum class Op { put, get };

std::string nameOf(Op op) {
  return op == Op::put ? "put" : "get";
}

// One end is always our region, the other the peer's on that device.
struct Ends {
  const Path& path;
  Device there;

  std::string text(const Session& session, Op op) const {
    const std::string here = session.memory().toString();
    return op == Op::put ? fmt::format("{} to {}", here, there.toString())
                         : fmt::format("{} to {}", there.toString(), here);
  }
  BareWay way(Op op) const {
    if (!there.isHost()) return BareWay::deviceToDevice;
    return op == Op::put ? BareWay::deviceToHost : BareWay::hostToDevice;
  }
};

Result<Compared> compareOne(Bench& bench, const Ends& ends, Op op, size_t bytes) {
  return compareOnDevice(
      bench.session, ends.path, "ipc",
      [=](const Path& on) {
        return OneTransfer{on, op == Op::put, bytes};
      },
      [&](BareCuda& cuda) { return cuda.copy(ends.way(op), bytes); }, bench.plan.time);
}

Status smallDevicePut(Bench& bench, const Ends& ends, size_t bytes) {
  const std::string what =
      fmt::format("put {}, {}", sizeText(bytes), ends.text(bench.session, Op::put));
  bench.step(what);
  TOOL_ASSIGN(const Compared compared, compareOne(bench, ends, Op::put, bytes));
  bench.run.targets.push_back(timeAtMost(what, compared, kBareCopy, 1.1));
  return Status();
}

Status largeTransfer(Bench& bench, const Ends& ends, Op op, size_t bytes) {
  const std::string what =
      fmt::format("{} {}, {}", nameOf(op), sizeText(bytes), ends.text(bench.session, op));
  bench.step(what);
  if (bytes > ends.path.local.size()) return Status();
  TOOL_ASSIGN(const Compared compared, compareOne(bench, ends, op, bytes));
  bench.run.targets.push_back(rateAtLeast(what, compared, kBareCopy, 0.97, bandwidthOf(bytes)));
  return Status();
}

// In order on our side, scattered on the peer's in the same way every time.
std::vector<Block> scattered(size_t count, size_t bytes) {
  std::vector<size_t> order(count);
  std::iota(order.begin(), order.end(), size_t{0});
  std::shuffle(order.begin(), order.end(), std::mt19937_64(1));
  std::vector<Block> blocks;
  for (size_t i = 0; i < count; ++i) blocks.push_back({i * bytes, order[i] * bytes, bytes});
  return blocks;
}

Status scatteredBlocks(Bench& bench, const Ends& ends, Op op, size_t wanted, size_t bytes,
                       double limit) {
  const size_t count = std::min(wanted, ends.path.local.size() / bytes);
  const std::string what = fmt::format("{} {} blocks of {}, {}", nameOf(op), count, sizeText(bytes),
                                       ends.text(bench.session, op));
  bench.step(what);
  const std::vector<Block> list = scattered(count, bytes);
  auto batchOn = [&](const Path& on) {
    return [&, transfer = OneTransfer{on, op == Op::put, bytes}]() -> Status {
      TOOL_ASSIGN(Ticket ticket, transfer.start(list));
      return ticket.wait();
    };
  };
  TOOL_ASSIGN(
      const Compared compared,
      compareOnDevice(
          bench.session, ends.path, "ipc", batchOn,
          [&](BareCuda& cuda) { return cuda.copy(ends.way(op), count * bytes); }, bench.plan.time));
  bench.run.targets.push_back(
      rateAtLeast(what, compared, kBareCopy, limit, bandwidthOf(count * bytes)));
  return Status();
}

// A put to one half of the peer's memory while a get reads the other.
Status bothWays(Bench& bench, const Ends& ends) {
  const size_t bytes = std::min(64 * kMiB, ends.path.local.size() / 2);
  const std::string what = fmt::format("put and get {} at once, {} and {}", sizeText(bytes),
                                       bench.session.memory().toString(), ends.there.toString());
  bench.step(what);
  auto bothOn = [=](const Path& on) {
    return [&on, bytes]() -> Status {
      TOOL_ASSIGN(Ticket put, on.remote.startPut(on.local, {{0, 0, bytes}}));
      TOOL_ASSIGN(Ticket get, on.remote.startGet(on.local, {{bytes, bytes, bytes}}));
      TOOL_TRY(put.wait());
      return get.wait();
    };
  };
  TOOL_ASSIGN(const Compared compared,
              compareOnDevice(
                  bench.session, ends.path, "ipc", bothOn,
                  [&](BareCuda& cuda) { return cuda.copyBothWays(bytes); }, bench.plan.time));
  bench.run.targets.push_back(rateAtLeast(what, compared, kBareCopy, 0.9, bandwidthOf(2 * bytes)));
  return Status();
}

// What the first put to a peer's large memory takes, from the moment that it is opened.
Status openRegion(Bench& bench, Device there) {
  constexpr int kTurns = 5;
  constexpr double kLimit = 5;  // ms
  const size_t bytes = 4 * bench.session.server().bytes;
  const std::string what = fmt::format("open {} of {}, put 8 B", sizeText(bytes), there.toString());
  bench.step(what);
  TOOL_TRY(bench.session.makeRegion(kLargeRegion, bytes, there));
  Samples times;
  for (int i = 0; i < kTurns; ++i) {
    TOOL_ASSIGN(auto path, bench.session.path("ipc"));
    const auto start = Clock::now();
    TOOL_ASSIGN(RemoteRegion remote, path->peer.open(kLargeRegion));
    TOOL_TRY(remote.put(path->local, 0, 0, 8));
    times.push_back(nanosecondsSince(start));
  }
  const double ms = median(times) / 1e6;
  bench.run.targets.push_back(
      {what, timeText(median(times)), "", ms, fmt::format("<= {:.0f} ms", kLimit), ms <= kLimit});
  return Status();
}

Status deviceOnSameHost(Bench& bench, Device there) {
  Session& session = bench.session;
  TOOL_ASSIGN(auto toDevice, session.path("ipc", kDeviceRegion));
  const Ends device{*toDevice, there};
  for (size_t bytes : {size_t{8}, 64 * kKiB}) TOOL_TRY(smallDevicePut(bench, device, bytes));
  for (size_t bytes : {64 * kMiB, 256 * kMiB})
    TOOL_TRY(largeTransfer(bench, device, Op::put, bytes));
  TOOL_TRY(scatteredBlocks(bench, device, Op::put, 4096, 16 * kKiB, 0.85));
  TOOL_TRY(scatteredBlocks(bench, device, Op::put, 100000, 2 * kKiB, 0.5));

  TOOL_ASSIGN(auto toHost, session.path("ipc", kRegion));
  const Ends host{*toHost, Device{}};
  TOOL_TRY(scatteredBlocks(bench, host, Op::put, 4096, 16 * kKiB, 0.93));
  TOOL_TRY(scatteredBlocks(bench, host, Op::get, 4096, 16 * kKiB, 0.9));
  for (Op op : {Op::put, Op::get}) {
    for (size_t bytes : {16 * kMiB, 256 * kMiB}) TOOL_TRY(largeTransfer(bench, host, op, bytes));
  }
  TOOL_TRY(bothWays(bench, host));
  return openRegion(bench, there);
}

Status deviceOverTcp(Bench& bench, Device there) {
  const size_t bytes = std::min(64 * kMiB, bench.session.server().bytes);
  TOOL_ASSIGN(auto path, bench.session.path("tcp", kDeviceRegion));
  const std::string what = fmt::format("tcp put {}, {}", sizeText(bytes),
                                       Ends{*path, there}.text(bench.session, Op::put));
  bench.step(what);
  TOOL_ASSIGN(const Compared compared, compareOnDevice(
                                           bench.session, *path, "tcp",
                                           [=](const Path& on) {
                                             return OneTransfer{on, true, bytes};
                                           },
                                           {}, 8 * bench.plan.time));
  bench.run.targets.push_back(
      rateAtLeast(what, compared, compared.against, 0.95, bandwidthOf(bytes)));
  return Status();
}

}  // namespace

Status measureDeviceTargets(Bench& bench, const std::vector<std::string>& transports) {
  Session& session = bench.session;
  if (session.memory().isHost()) {
    return Status(Code::invalidArgument,
                  "--targets begin in our own memory: name the device in --memory, too");
  }
  const Device there = session.peerMemory().isHost() ? session.memory() : session.peerMemory();
  TOOL_TRY(session.makeRegion(kDeviceRegion, session.server().bytes, there));
  for (const auto& transport : transports) {
    if (transport == "ipc") TOOL_TRY(deviceOnSameHost(bench, there));
    if (transport == "tcp") TOOL_TRY(deviceOverTcp(bench, there));
  }
  return Status();
}

}  // namespace hmc::bench
