#include <stdexcept>

#include <fmt/core.h>

#include "bench/report/units.h"
#include "side.h"

// Receives from one client, checks every byte, and ends with it.
namespace hmc::uhm {

namespace {

void listen(Side& side, const Options& options) {
  const std::string uds =
      options.udsDir.empty() ? "" : Communicator::udsPathFor(options.udsDir, options.selfRank);
  must(side.communicator().initServer(options.serverIp, options.dataPort, options.controlPort, uds,
                                      options.mode->type));
  fmt::print("mode:   {}\nmemory: {}\nlistening on {}:{}\n", options.mode->name, side.memory(),
             options.serverIp, options.dataPort);
  std::fflush(stdout);
}

void agreeOnMode(Side& side, const Options& options) {
  const uint64_t ours = options.mode - modes().data();
  const uint64_t theirs = side.receiveTag();
  side.sendTag(ours);
  if (theirs == ours) return;
  throw std::runtime_error(
      fmt::format("the client runs another mode than --mode {}", options.mode->name));
}

void receivePieces(Side& side, size_t bytes) {
  for (size_t done = 0; done < bytes;) {
    const size_t size = side.receiveTag();
    if (size == 0 || size > bytes - done) {
      throw std::runtime_error(
          fmt::format("the client announced {} bytes, and {} were missing", size, bytes - done));
    }
    must(side.buffer().readToGpu(side.data(bytes) + done, size));
    side.sendTag(size);
    done += size;
  }
}

void receive(Side& side, const Options& options, size_t bytes) {
  switch (options.mode->how) {
    case How::stream: {
      size_t received = 0;
      must(side.communicator().recvDataFrom(options.clientIp, 0, side.data(bytes), bytes,
                                            side.memoryType(), &received, options.mode->type));
      if (received != bytes)
        throw std::runtime_error(fmt::format("{} bytes came instead of {}", received, bytes));
      return;
    }
    case How::serial:
      return receivePieces(side, bytes);
    case How::put:
    case How::pipeline:
      return;  // they need no receiver
  }
}

// How many transfers were checked.
uint64_t serveRounds(Side& side, const Options& options, size_t bytes) {
  const uint64_t rounds = side.receiveTag();
  if (options.mode->hasOwnMemory()) (void)side.data(bytes);
  for (uint64_t round = 0; round < rounds; ++round) {
    side.sendTag(kReady);
    receive(side, options, bytes);
    // Checking takes a core, and the client's timer may still run.
    (void)side.receiveTag();
    const uint64_t checked = side.checkPattern(bytes, round);
    side.sendTag(checked);
    if (checked != kIntact) {
      throw std::runtime_error(
          fmt::format("byte {} of {} arrived changed, in round {}", checked, bytes, round));
    }
  }
  fmt::print("{:>10}  {} transfers verified\n", bench::sizeText(bytes), rounds);
  std::fflush(stdout);
  return rounds;
}

void serve(const Options& options) {
  Side side(options);
  listen(side, options);
  agreeOnMode(side, options);
  uint64_t transfers = 0;
  for (uint64_t bytes = side.receiveTag(); bytes != kNoMore; bytes = side.receiveTag())
    transfers += serveRounds(side, options, bytes);
  side.sendTag(kNoMore);
  fmt::print("verified: every byte of {} transfers\n", transfers);
}

}  // namespace

}  // namespace hmc::uhm

int main(int argc, char** argv) {
  using namespace hmc::uhm;
  return runProgram("uhm_server", serve, parseOptions(Role::server, argc, argv));
}
