#include "demo/demo.h"

#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <string>
#include <vector>

#include <fmt/core.h>

#include "child.h"
#include "hmc/node.h"
#include "hmc/version.h"

namespace hmc::tool {

namespace {

constexpr std::chrono::seconds kTimeout{60};

struct Row {
  std::string transport;
  double put = 0;  // GB/s
  double get = 0;
  Status status;
};

double gigabytesPerSecond(size_t bytes, std::chrono::steady_clock::duration took) {
  return static_cast<double>(bytes) / std::chrono::duration<double>(took).count() / 1e9;
}

#define DEMO_TRY(expression)                                    \
  do {                                                          \
    if (Status tried = (expression); !tried.ok()) return tried; \
  } while (false)

// put, tell the server, compare its checksum, get what it wrote meanwhile, compare.
Status exchange(Node& node, Peer& server, const RemoteRegion& remote, const LocalRegion& local,
                Row& row) {
  fillPattern(local.data(), local.size(), 1);
  const uint64_t sent = checksum(local.data(), local.size());
  auto started = std::chrono::steady_clock::now();
  DEMO_TRY(remote.put(local, 0, 0, local.size()));
  row.put = gigabytesPerSecond(local.size(), std::chrono::steady_clock::now() - started);
  DEMO_TRY(server.notify(kCheckRequest));
  auto answer = node.nextNote(kTimeout);
  DEMO_TRY(answer.status());
  uint64_t arrived = 0;
  uint64_t seed = 0;
  if (std::sscanf(answer->bytes.c_str(), "%" SCNu64 " %" SCNu64, &arrived, &seed) != 2) {
    return Status(Code::failed, "the server answered \"" + answer->bytes + "\"");
  }
  if (arrived != sent) return Status(Code::failed, "what arrived differs from what was put");
  started = std::chrono::steady_clock::now();
  DEMO_TRY(remote.get(local, 0, 0, local.size()));
  row.get = gigabytesPerSecond(local.size(), std::chrono::steady_clock::now() - started);
  std::vector<char> expected(local.size());
  fillPattern(expected.data(), expected.size(), seed);
  if (checksum(expected.data(), expected.size()) != checksum(local.data(), local.size())) {
    return Status(Code::failed, "what was got differs from what the server wrote");
  }
  return Status();
}

Status tryTransport(const std::string& transport, size_t bytes, Row& row) {
  auto child =
      Child::start({"demo-server", "--transport", transport, "--bytes", std::to_string(bytes)});
  DEMO_TRY(child.status());
  auto door = (*child)->readLine(kTimeout);
  DEMO_TRY(door.status());
  if (door->rfind("error ", 0) == 0)
    return Status(Code::failed, "the server could not start: " + door->substr(6));
  NodeOptions options;
  options.name = "demo client";
  options.transports = {transport};
  auto node = Node::create(options);
  DEMO_TRY(node.status());
  auto local = node->allocate("local", bytes);
  DEMO_TRY(local.status());
  auto server = node->connect(*door);
  DEMO_TRY(server.status());
  auto remote = server->open(kDemoRegion);
  DEMO_TRY(remote.status());
  return exchange(*node, *server, *remote, *local, row);
}

// The transports of this build, and why the others cannot run here.
Result<std::vector<PathReport>> transportsHere() {
  auto node = Node::create();
  if (!node.ok()) return node.status();
  return node->transports();
}

}  // namespace

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
  fmt::print(
      "Each moved its bytes once, into memory that nobody had touched: `hmc bench` measures "
      "speed.\n");
  return worked > 0 && failed == 0 ? 0 : 1;
}

}  // namespace hmc::tool
