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

struct Row {
  std::string transport;
  double put = 0;  // GB/s
  double get = 0;
  Status status;
};

// GB/s
double speed(size_t bytes, std::chrono::steady_clock::duration took) {
  return static_cast<double>(bytes) / std::chrono::duration<double>(took).count() / 1e9;
}

// put, tell the server, compare its checksum, get what it wrote meanwhile, compare.
Status exchange(Node& node, Peer& server, const RemoteRegion& remote, const LocalRegion& local,
                Row& row) {
  fillPattern(local.data(), local.size(), 1);
  const uint64_t sent = checksum(local.data(), local.size());
  auto started = std::chrono::steady_clock::now();
  TOOL_TRY(remote.put(local, 0, 0, local.size()));
  row.put = speed(local.size(), std::chrono::steady_clock::now() - started);
  TOOL_TRY(server.notify(kCheckRequest));
  TOOL_ASSIGN(const Note answer, node.nextNote(kDemoTimeout));
  uint64_t arrived = 0;
  uint64_t seed = 0;
  if (std::sscanf(answer.bytes.c_str(), "%" SCNu64 " %" SCNu64, &arrived, &seed) != 2)
    return Status(Code::failed, "the server answered \"" + answer.bytes + "\"");
  if (arrived != sent) return Status(Code::failed, "what arrived differs from what was put");
  started = std::chrono::steady_clock::now();
  TOOL_TRY(remote.get(local, 0, 0, local.size()));
  row.get = speed(local.size(), std::chrono::steady_clock::now() - started);
  std::vector<char> expected(local.size());
  fillPattern(expected.data(), expected.size(), seed);
  if (checksum(expected.data(), expected.size()) != checksum(local.data(), local.size()))
    return Status(Code::failed, "what was got differs from what the server wrote");
  return Status();
}

Status tryTransport(const std::string& transport, size_t bytes, Row& row) {
  TOOL_ASSIGN(DemoPair pair, startDemoPair(transport, bytes, bytes));
  return exchange(pair.node, pair.server, pair.remote, pair.local, row);
}

// The transports of this build, and why the others cannot run here.
Result<std::vector<PathReport>> transportsHere() {
  auto node = Node::create();
  if (!node.ok()) return node.status();
  return node->transports();
}

}  // namespace

Result<DemoPair> startDemoPair(const std::string& transport, size_t bytes, size_t localBytes) {
  TOOL_ASSIGN(auto child, Child::start({"demo-server", "--transport", transport, "--bytes",
                                        std::to_string(bytes)}));
  TOOL_ASSIGN(const std::string address, child->readLine(kDemoTimeout));
  NodeOptions options;
  options.name = "demo client";
  options.transports = {transport};
  TOOL_ASSIGN(Node node, Node::create(options));
  TOOL_ASSIGN(LocalRegion local, node.allocate("local", localBytes));
  TOOL_ASSIGN(Peer server, node.connect(address, kDemoTimeout));
  TOOL_ASSIGN(RemoteRegion remote, server.open(kDemoRegion, kDemoTimeout));
  return DemoPair{std::move(child), std::move(node), std::move(local), std::move(server),
                  std::move(remote)};
}

int runDemo(size_t bytes) {
  auto transports = transportsHere();
  if (!transports.ok()) {
    fmt::print(stderr, "hmc: {}\n", transports.status().message());
    return 1;
  }
  fmt::print("HMC {}: two processes, {:.0f} MB each way, verified by checksum\n\n", kVersion,
             static_cast<double>(bytes) / 1e6);
  fmt::print("{:<10} {:>10} {:>10}   {}\n", "transport", "put GB/s", "get GB/s", "result");
  int worked = 0;
  int failed = 0;
  for (const auto& transport : *transports) {
    if (!transport.usable) {
      fmt::print("{:<10} {:>10} {:>10}   not here: {}\n", transport.transport, "-", "-",
                 transport.reason);
      continue;
    }
    Row row;
    Status status = tryTransport(transport.transport, bytes, row);
    if (status.ok()) {
      ++worked;
      fmt::print("{:<10} {:>10.2f} {:>10.2f}   put, note and get verified\n", transport.transport,
                 row.put, row.get);
    } else {
      ++failed;
      fmt::print("{:<10} {:>10} {:>10}   FAILED: {}\n", transport.transport, "-", "-",
                 status.message());
    }
    std::fflush(stdout);
  }
  fmt::print("\n{} of {} transports worked, {} failed\n", worked, transports->size(), failed);
  fmt::print("Each moved its bytes once, into untouched memory. `hmc bench` measures the speed.\n");
  return worked > 0 && failed == 0 ? 0 : 1;
}

}  // namespace hmc::tool
