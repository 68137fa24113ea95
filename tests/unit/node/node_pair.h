#pragma once

#include <gtest/gtest.h>

#include <numeric>
#include <string>
#include <vector>

#include "hmc/node.h"

namespace hmc {

inline const Device kGpu{DeviceKind::cuda, 0};
inline const Device kOtherGpu{DeviceKind::cuda, 1};

// Takes the value out of a Result, or ends the test with its sentence.
template <class T>
T must(Result<T> result) {
  EXPECT_TRUE(result.ok()) << result.status().toString();
  if (!result.ok()) throw std::runtime_error(result.status().toString());
  return *std::move(result);
}

inline NodeOptions named(const std::string& name, std::vector<std::string> transports = {}) {
  NodeOptions options;
  options.name = name;
  options.transports = std::move(transports);
  return options;
}

inline void fill(const LocalRegion& region, int seed) {
  auto* bytes = static_cast<unsigned char*>(region.data());
  std::iota(bytes, bytes + region.size(), static_cast<unsigned char>(seed));
}

inline std::string text(const LocalRegion& region, size_t offset, size_t size) {
  return std::string(static_cast<const char*>(region.data()) + offset, size);
}

// Two Nodes in one process; b has dialled a.
struct NodePair {
  explicit NodePair(std::vector<std::string> transports = {})
      : a(must(Node::create(named("a", transports)))),
        b(must(Node::create(named("b", transports)))),
        listener(must(a.listen("tcp://127.0.0.1:0"))),
        toA(must(b.connect(listener))),
        toB(must(a.peer("b"))) {}

  Node a;
  Node b;
  std::string listener;
  Peer toA;
  Peer toB;
};

}  // namespace hmc
