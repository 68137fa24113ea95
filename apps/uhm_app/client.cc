#include <algorithm>
#include <stdexcept>
#include <tuple>

#include <fmt/core.h>

#include "bench/report/units.h"
#include "bench/timing.h"
#include "results.h"
#include "side.h"

// Sends to a server what it checks, and measures how long that takes.
namespace hmc::uhm {

namespace {

void connect(Side& side, const Options& options) {
  Communicator::CtrlLink link;
  link.ip = options.controlIp;
  link.port = options.controlPort;
  if (!options.udsDir.empty()) {
    link.transport = Communicator::CtrlTransport::UDS;
    link.uds_path = Communicator::udsPathFor(options.udsDir, options.peerRank);
  }
  must(side.communicator().connectTo(options.peerRank, options.selfRank, options.serverIp,
                                     options.dataPort, link, options.mode->type));
}

void agreeOnMode(Side& side, const Options& options) {
  const uint64_t ours = options.mode - modes().data();
  side.sendTag(ours);
  const uint64_t theirs = side.receiveTag();
  if (theirs == ours) return;
  throw std::runtime_error(fmt::format("the server runs --mode {}, and we --mode {}",
                                       theirs < modes().size() ? modes()[theirs].name : "unknown",
                                       options.mode->name));
}

void describe(Side& side, const Options& options) {
  const Mode& mode = *options.mode;
  const char* asked = mode.type == ConnType::UCX ? "UCX" : "RDMA";
  fmt::print("mode:      {}\nmemory:    {}\ntransport: {} (asked for {})\ntimed:     {}\n",
             mode.name, mode.how == How::put ? "host memory, as this mode has it" : side.memory(),
             side.communicator().path(options.serverIp, options.dataPort, mode.type), asked,
             mode.timed);
  fmt::print("           median of {} after {} to warm up\n", options.repeats, options.warmups);
  std::fflush(stdout);
}

void sendPieces(Side& side, const Options& options, size_t bytes) {
  for (size_t done = 0; done < bytes;) {
    const size_t size = std::min(side.piece(), bytes - done);
    must(side.buffer().writeFromGpu(side.data(bytes) + done, size));
    must(side.communicator().put(options.serverIp, options.dataPort, 0, 0, size,
                                 options.mode->type));
    side.sendTag(size);
    (void)side.receiveTag();
    done += size;
  }
}

void send(Side& side, const Options& options, size_t bytes) {
  Communicator& communicator = side.communicator();
  const auto& [ip, port, type] = std::tie(options.serverIp, options.dataPort, options.mode->type);
  switch (options.mode->how) {
    case How::stream:
      return must(
          communicator.sendDataTo(ip, port, side.data(bytes), bytes, side.memoryType(), type));
    case How::serial:
      return sendPieces(side, options, bytes);
    case How::put:
      return must(communicator.put(ip, port, 0, 0, bytes, type));
    case How::pipeline:
      return must(
          communicator.putPipeline(ip, port, 0, 0, bytes, options.chunk, options.inflight, type));
  }
}

// One transfer, in nanoseconds.
double timeRound(Side& side, const Options& options, size_t bytes, uint64_t round) {
  side.writePattern(bytes, round);
  if (side.receiveTag() != kReady) throw std::runtime_error("the server was not ready");
  const auto start = bench::Clock::now();
  send(side, options, bytes);
  const double time = bench::nanosecondsSince(start);
  side.sendTag(bytes);
  const uint64_t checked = side.receiveTag();
  if (checked != kIntact)
    throw std::runtime_error(fmt::format("byte {} of {} arrived changed", checked, bytes));
  return time;
}

Row measure(Side& side, const Options& options, size_t bytes) {
  Row row{bytes, {}};
  side.sendTag(bytes);
  side.sendTag(options.warmups + options.repeats);
  for (uint64_t round = 0; round < options.warmups + options.repeats; ++round) {
    const double time = timeRound(side, options, bytes, round);
    if (round >= options.warmups) row.nanoseconds.push_back(time);
  }
  return row;
}

void checkSizes(const Options& options) {
  if (options.mode->hasOwnMemory()) return;
  for (size_t bytes : options.sizes) {
    if (bytes <= options.buffer) continue;
    throw std::runtime_error(
        fmt::format("{} bytes do not fit into a ConnBuffer of {}: use a larger --buffer on both "
                    "sides, or smaller --sizes",
                    bytes, options.buffer));
  }
}

void run(const Options& options) {
  checkSizes(options);
  const Csv csv(options.csv, *options.mode);
  Side side(options);
  connect(side, options);
  agreeOnMode(side, options);
  describe(side, options);
  for (size_t bytes : options.sizes) {
    const Row row = measure(side, options, bytes);
    printRow(row);
    csv.add(row);
  }
  side.sendTag(kNoMore);
  (void)side.receiveTag();
  fmt::print("verified: every byte of {} transfers; times are in {}\n",
             options.sizes.size() * (options.warmups + options.repeats), options.csv);
}

}  // namespace

}  // namespace hmc::uhm

int main(int argc, char** argv) {
  using namespace hmc::uhm;
  return runProgram("uhm_client", run, parseOptions(Role::client, argc, argv));
}
