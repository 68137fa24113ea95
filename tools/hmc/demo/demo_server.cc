#include <thread>

#include <fmt/core.h>

#include "child.h"
#include "demo/demo.h"
#include "hmc/node.h"

namespace hmc::tool {

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

namespace {

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

int serveDemo(const std::string& transport, size_t bytes) {
  NodeOptions options;
  options.name = "demo server";
  options.transports = {transport};
  auto node = Node::create(options);
  auto region = node.ok() ? node->allocate(kDemoRegion, bytes) : Result<LocalRegion>(node.status());
  if (!tellParent(region.ok() ? node->listen("tcp://127.0.0.1:0")
                              : Result<std::string>(region.status())))
    return 1;
  std::thread server([&] { serve(*node, *region); });
  waitForParentToEnd();
  // Closing the Node ends nextNote(), and so the thread.
  { Node closing = *std::move(node); }
  server.join();
  return 0;
}

}  // namespace hmc::tool
