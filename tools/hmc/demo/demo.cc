#include "demo/demo.h"

#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <string>
#include <vector>

#include <fmt/core.h>

#include "hmc/version.h"
#include "try.h"

namespace hmc::tool {

namespace {

constexpr std::chrono::seconds kDemoTimeout{60};

struct Speeds {
  double put = 0;  // GB/s
  double get = 0;
};

// GB/s
double speed(size_t bytes, std::chrono::steady_clock::duration took) {
  return static_cast<double>(bytes) / std::chrono::duration<double>(took).count() / 1e9;
}

// put, tell the server, compare its checksum, get what it wrote meanwhile, compare.
Status tryTransport(const std::string& transport, size_t bytes, Speeds& speeds) {
  TOOL_ASSIGN(DemoPair pair, startDemoPair(transport, bytes, bytes));
  auto& [process, node, local, server, remote] = pair;
  fillPattern(local.data(), local.size(), 1);
  const uint64_t sent = checksum(local.data(), local.size());
  auto started = std::chrono::steady_clock::now();
  TOOL_TRY(remote.put(local, 0, 0, local.size()));
  speeds.put = speed(local.size(), std::chrono::steady_clock::now() - started);
  TOOL_TRY(server.notify(kCheckRequest));
  TOOL_ASSIGN(const Note answer, node.nextNote(kDemoTimeout));
  uint64_t arrived = 0;
  uint64_t seed = 0;
  if (std::sscanf(answer.bytes.c_str(), "%" SCNu64 " %" SCNu64, &arrived, &seed) != 2)
    return Status(Code::failed, "the server answered \"" + answer.bytes + "\"");
  if (arrived != sent) return Status(Code::failed, "what arrived differs from what was put");
  started = std::chrono::steady_clock::now();
  TOOL_TRY(remote.get(local, 0, 0, local.size()));
  speeds.get = speed(local.size(), std::chrono::steady_clock::now() - started);
  std::vector<char> expected(local.size());
  fillPattern(expected.data(), expected.size(), seed);
  if (checksum(expected.data(), expected.size()) != checksum(local.data(), local.size()))
    return Status(Code::failed, "what was got differs from what the server wrote");
  return Status();
}

// Answers "check" notes: the checksum of what the peer has put, and then a pattern to get.
void serve(Node& node, const LocalRegion& region) {
  for (uint64_t seed = 1000;; ++seed) {
    auto note = node.nextNote(std::chrono::hours(1));
    if (!note.ok()) return;
    uint64_t sum = checksum(region.data(), region.size());
    fillPattern(region.data(), region.size(), seed);
    note->from.notify(fmt::format("{} {}", sum, seed));
  }
}

}  // namespace

void fillPattern(void* data, size_t bytes, uint64_t seed) {
  auto* out = static_cast<unsigned char*>(data);
  for (size_t i = 0; i < bytes; ++i) {
    seed = seed * 6364136223846793005U + 1442695040888963407U;
    out[i] = static_cast<unsigned char>(seed >> 56);
  }
}

uint64_t checksum(const void* data, size_t bytes) {
  const auto* in = static_cast<const unsigned char*>(data);
  uint64_t sum = 1469598103934665603U;
  for (size_t i = 0; i < bytes; ++i) sum = (sum ^ in[i]) * 1099511628211U;
  return sum;
}

Result<DemoPair> startDemoPair(const std::string& transport, size_t bytes, size_t localBytes) {
  TOOL_ASSIGN(OtherProcess process, startOtherProcess({"demo-server", "--transport", transport,
                                                       "--bytes", std::to_string(bytes)}));
  NodeOptions options;
  options.name = "demo client";
  options.transports = {transport};
  TOOL_ASSIGN(Node node, Node::create(options));
  TOOL_ASSIGN(LocalRegion local, node.allocate("local", localBytes));
  TOOL_ASSIGN(Peer server, node.connect(process.address, kDemoTimeout));
  TOOL_ASSIGN(RemoteRegion remote, server.open(kDemoRegion, kDemoTimeout));
  return DemoPair{std::move(process), std::move(node), std::move(local), std::move(server),
                  std::move(remote)};
}

int runDemo(size_t bytes) {
  auto node = Node::create();
  if (!node.ok()) {
    fmt::print(stderr, "hmc: {}\n", node.status().message());
    return 1;
  }
  const auto transports = node->transports();
  fmt::print("HMC {}: two processes, {:.0f} MB each way, verified by checksum\n\n", kVersion,
             static_cast<double>(bytes) / 1e6);
  fmt::print("{:<10} {:>10} {:>10}   {}\n", "transport", "put GB/s", "get GB/s", "result");
  int worked = 0;
  int failed = 0;
  for (const auto& transport : transports) {
    if (!transport.usable) {
      fmt::print("{:<10} {:>10} {:>10}   not here: {}\n", transport.transport, "-", "-",
                 transport.reason);
      continue;
    }
    Speeds speeds;
    Status status = tryTransport(transport.transport, bytes, speeds);
    if (status.ok()) {
      ++worked;
      fmt::print("{:<10} {:>10.2f} {:>10.2f}   put, note and get verified\n", transport.transport,
                 speeds.put, speeds.get);
    } else {
      ++failed;
      fmt::print("{:<10} {:>10} {:>10}   FAILED: {}\n", transport.transport, "-", "-",
                 status.message());
    }
    std::fflush(stdout);
  }
  fmt::print("\n{} of {} transports worked, {} failed\n", worked, transports.size(), failed);
  fmt::print("Each moved its bytes once, into untouched memory. `hmc bench` measures the speed.\n");
  return worked > 0 && failed == 0 ? 0 : 1;
}

int serveDemo(const std::string& transport, size_t bytes) {
  NodeOptions options;
  options.name = "demo server";
  options.transports = {transport};
  auto node = Node::create(options);
  auto region = node.ok() ? node->allocate(kDemoRegion, bytes) : Result<LocalRegion>(node.status());
  if (!tellParent(region.ok() ? node->listen("tcp://127.0.0.1:0")
                              : Result<std::string>(region.status())))
    return 1;
  serve(*node, *region);
  return 0;
}

}  // namespace hmc::tool
