#include <algorithm>
#include <limits>

#include <fmt/core.h>

#include "bench/report/units.h"
#include "bench/stream_receiver.h"
#include "bench/targets.h"

namespace hmc::bench {

namespace {

// The chunk with which the driver's own copies are quickest.
Result<size_t> quickestChunk(BareCuda& cuda, size_t bytes) {
  constexpr int kTries = 3;
  size_t quickest = bytes;
  double best = std::numeric_limits<double>::max();
  for (size_t chunk = std::min(bytes, kMiB / 2); chunk <= std::min(bytes, 8 * kMiB); chunk *= 2) {
    for (int i = 0; i < kTries; ++i) {
      const auto start = Clock::now();
      TOOL_TRY(cuda.copyThroughHost(bytes, chunk));
      const double time = nanosecondsSince(start);
      if (time < best) quickest = chunk;
      best = std::min(best, time);
    }
  }
  return quickest;
}

// Our end of a stream to the server's memory.
struct Stream {
  std::string host;
  uint16_t port;
  std::string to;  // the server's device
  std::unique_ptr<DeviceBytes> from;
  std::unique_ptr<Communicator> communicator;

  Status send(size_t bytes) const {
    return communicator->sendDataTo(host, port, from->data(), bytes, from->type(),
                                    ConnType::AUTO) == status_t::SUCCESS
               ? Status()
               : lastStatus();
  }
};

Result<Stream> openStream(Session& session, size_t bytes, Device there) {
  const Device here = session.memory();
  TOOL_ASSIGN(const std::string port,
              session.request(fmt::format("stream {} {}", bytes, there.toString())));
  Stream stream{session.host(), static_cast<uint16_t>(std::stoul(port)), there.toString(), nullptr,
                nullptr};
  TOOL_ASSIGN(stream.from, DeviceBytes::allocate(bytes, here));
  TOOL_ASSIGN(stream.communicator,
              session.communicator(
                  session.newRank(), "ipc", stream.port,
                  std::make_shared<ConnBuffer>(here.index, kStreamBuffer, MemoryType::CPU)));
  return stream;
}

// Ours beside the driver's own copies in such chunks.
Status compareStream(Bench& bench, const Path& toHost, const Stream& stream, const char* name,
                     size_t chunk, double limit) {
  const size_t bytes = stream.from->size();
  const std::string device = bench.session.memory().toString();
  const std::string what =
      fmt::format("g2h2g {}, {} to {}, beside {}", sizeText(bytes), device, stream.to, name);
  bench.step(what);
  TOOL_ASSIGN(
      const Compared compared,
      compareOnDevice(
          bench.session, toHost, "ipc",
          [&](const Path&) { return [&] { return stream.send(bytes); }; },
          [&](BareCuda& cuda) { return cuda.copyThroughHost(bytes, chunk); }, 4 * bench.plan.time));
  bench.run.targets.push_back(rateAtLeast(what, compared,
                                          fmt::format("bare copies of {}", sizeText(chunk)), limit,
                                          bandwidthOf(bytes)));
  return Status();
}

}  // namespace

Status measureStreamTargets(Bench& bench, const Path& toHost, Device there) {
  Session& session = bench.session;
  const size_t bytes = std::min(256 * kMiB, toHost.local.size());
  size_t chunk = bytes;
  if (auto cuda = session.bareCuda(); cuda.ok()) {
    TOOL_ASSIGN(chunk, quickestChunk(**cuda, bytes));
  }
  TOOL_ASSIGN(const Stream stream, openStream(session, bytes, there));
  TOOL_TRY(session.request("receive").status());
  TOOL_TRY(compareStream(bench, toHost, stream, "pipelined", chunk, 0.95));
  TOOL_TRY(compareStream(bench, toHost, stream, "serial", bytes, 1.7));
  TOOL_TRY(stream.send(0));
  return session.answer().status();
}

}  // namespace hmc::bench
