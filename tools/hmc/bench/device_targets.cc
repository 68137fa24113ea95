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

// "put 64 KiB, cuda:0 to cpu"
std::string targetName(const Path& path, bool put, const std::string& what) {
  const std::string here = path.local.device().toString();
  const std::string there = path.remote.device().toString();
  return fmt::format("{} {}, {} to {}", put ? "put" : "get", what, put ? here : there,
                     put ? there : here);
}

Result<Compared> compareOne(Bench& bench, const Path& path, bool put, size_t bytes) {
  return compareOnDevice(
      bench.session, path, "ipc",
      [=](const Path& on) {
        return OneTransfer{on, put, bytes};
      },
      [&](BareCuda& cuda) { return cuda.copy(wayOf(path, put), bytes); }, bench.plan.time);
}

Status smallDevicePut(Bench& bench, const Path& path, size_t bytes) {
  const std::string what = targetName(path, true, sizeText(bytes));
  bench.step(what);
  TOOL_ASSIGN(const Compared compared, compareOne(bench, path, true, bytes));
  bench.run.targets.push_back(timeAtMost(what, compared, kBareCopy, 1.1));
  return Status();
}

Status largeTransfer(Bench& bench, const Path& path, bool put, size_t bytes) {
  const std::string what = targetName(path, put, sizeText(bytes));
  bench.step(what);
  if (bytes > path.local.size()) return Status();
  TOOL_ASSIGN(const Compared compared, compareOne(bench, path, put, bytes));
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

Status scatteredBlocks(Bench& bench, const Path& path, bool put, size_t wanted, size_t bytes,
                       double limit) {
  const size_t count = std::min(wanted, path.local.size() / bytes);
  const std::string what =
      targetName(path, put, fmt::format("{} blocks of {}", count, sizeText(bytes)));
  bench.step(what);
  const std::vector<Block> list = scattered(count, bytes);
  auto batchOn = [&](const Path& on) {
    return [&, transfer = OneTransfer{on, put, bytes}]() -> Status {
      TOOL_ASSIGN(Ticket ticket, transfer.start(list));
      return ticket.wait();
    };
  };
  TOOL_ASSIGN(const Compared compared,
              compareOnDevice(
                  bench.session, path, "ipc", batchOn,
                  [&](BareCuda& cuda) { return cuda.copy(wayOf(path, put), count * bytes); },
                  bench.plan.time));
  bench.run.targets.push_back(
      rateAtLeast(what, compared, kBareCopy, limit, bandwidthOf(count * bytes)));
  return Status();
}

// A put to one half of the peer's memory while a get reads the other.
Status bothWays(Bench& bench, const Path& path) {
  const size_t bytes = std::min(64 * kMiB, path.local.size() / 2);
  const std::string what =
      fmt::format("put and get {} at once, {} and {}", sizeText(bytes),
                  path.local.device().toString(), path.remote.device().toString());
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
                  bench.session, path, "ipc", bothOn,
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
  for (size_t bytes : {size_t{8}, 64 * kKiB}) TOOL_TRY(smallDevicePut(bench, *toDevice, bytes));
  for (size_t bytes : {64 * kMiB, 256 * kMiB})
    TOOL_TRY(largeTransfer(bench, *toDevice, true, bytes));
  TOOL_TRY(scatteredBlocks(bench, *toDevice, true, 4096, 16 * kKiB, 0.85));
  TOOL_TRY(scatteredBlocks(bench, *toDevice, true, 100000, 2 * kKiB, 0.5));

  TOOL_ASSIGN(auto toHost, session.path("ipc", kRegion));
  TOOL_TRY(scatteredBlocks(bench, *toHost, true, 4096, 16 * kKiB, 0.93));
  TOOL_TRY(scatteredBlocks(bench, *toHost, false, 4096, 16 * kKiB, 0.9));
  for (bool put : {true, false}) {
    for (size_t bytes : {16 * kMiB, 256 * kMiB})
      TOOL_TRY(largeTransfer(bench, *toHost, put, bytes));
  }
  TOOL_TRY(bothWays(bench, *toHost));
  TOOL_TRY(measureStreamTargets(bench, *toHost, there));
  return openRegion(bench, there);
}

// Scattered blocks, staged at both ends, beside as many bytes of host memory in one piece.
Status scatteredOverTcp(Bench& bench, const Path& path, size_t wanted, size_t size) {
  const size_t count = std::min(wanted, path.local.size() / size);
  const std::string what =
      "tcp " + targetName(path, true, fmt::format("{} blocks of {}", count, sizeText(size)));
  bench.step(what);
  const std::vector<Block> list = scattered(count, size);
  const std::vector<Block> whole{{0, 0, count * size}};
  auto listOn = [&](const Path& on) {
    const auto& blocks = on.local.device().isHost() ? whole : list;
    return [&blocks, transfer = OneTransfer{on, true, count * size}]() -> Status {
      TOOL_ASSIGN(Ticket ticket, transfer.start(blocks));
      return ticket.wait();
    };
  };
  TOOL_ASSIGN(const Compared compared,
              compareOnDevice(bench.session, path, "tcp", listOn, {}, 8 * bench.plan.time));
  bench.run.targets.push_back(
      rateAtLeast(what, compared, compared.against, 0.9, bandwidthOf(count * size)));
  return Status();
}

Status deviceOverTcp(Bench& bench) {
  const size_t bytes = std::min(64 * kMiB, bench.session.server().bytes);
  TOOL_ASSIGN(auto path, bench.session.path("tcp", kDeviceRegion));
  TOOL_TRY(scatteredOverTcp(bench, *path, 4096, 16 * kKiB));
  const std::string what = "tcp " + targetName(*path, true, sizeText(bytes));
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
    if (transport == "tcp") TOOL_TRY(deviceOverTcp(bench));
  }
  return Status();
}

}  // namespace hmc::bench
