#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "fakes/faulty_transport.h"
#include "fakes/inprocess_transport.h"
#include "memory/backends.h"
#include "node/node_impl.h"
#include "unit/node/node_pair.h"

namespace hmc {

// A transport of a FakePair, and what the two Nodes' ends of it do.
struct FakeTransport {
  explicit FakeTransport(const std::string& name, std::vector<Transport::Path> paths = {}) {
    for (auto* side : {&a, &b}) {
      side->name = name;
      side->paths = paths;
    }
  }
  fakes::InProcessOptions a;
  fakes::InProcessOptions b;
  std::shared_ptr<fakes::InProcessWire> wire = fakes::makeInProcessWire();
  std::shared_ptr<fakes::Faults> faults = std::make_shared<fakes::Faults>();  // of b's end
};

// One that reaches no device.
inline FakeTransport hostOnly() {
  FakeTransport one("short", {{"", 1000, 1}});
  one.a.hostOnly = one.b.hostOnly = true;
  return one;
}

// Two Nodes in one process, b has dialled a, that have nothing but fake transports.
class FakePair {
 public:
  explicit FakePair(std::vector<FakeTransport> transports, std::vector<std::string> named = {},
                    std::chrono::milliseconds lease = std::chrono::seconds(10),
                    std::vector<TransportSet::Missing> missing = {}, TraceHook trace = {},
                    bool grantsOnly = false)
      : transports_(std::move(transports)),
        missing_(std::move(missing)),
        trace_(trace),
        grantsOnly_(grantsOnly),
        a(make("a", named, lease)),
        b(make("b", named, lease)),
        toA(must(b->connect(must(a->listen("tcp://127.0.0.1:0")), {}, kDefaultTimeout))) {}
  ~FakePair() {
    b->close();
    a->close();
  }

  static std::shared_ptr<LocalMemory> allocate(NodeImpl& node, const std::string& name, size_t size,
                                               Device device = {}) {
    Region region = must(must(findBackend(device))->allocate(device.index, size));
    return must(node.registerMemory(name, region, Access::readWrite, /*owned=*/true));
  }
  std::shared_ptr<RemoteMapping> open(const std::string& region,
                                      const std::vector<std::string>& over = {}) {
    return must(b->open(toA, region, over, kDefaultTimeout));
  }
  // The transport that `explain` marks as used.
  std::string used(size_t size, Device local = {}) {
    for (const auto& path : b->explain(*toA, local, size)) {
      if (path.preferred) return path.transport;
    }
    return "none";
  }
  std::string reason(const std::string& transport) {
    for (const auto& path : b->explain(*toA)) {
      if (path.transport == transport) return path.reason;
    }
    return "none";
  }
  FakeTransport& fake(const std::string& name) {
    return *std::find_if(transports_.begin(), transports_.end(),
                         [&](const auto& one) { return one.a.name == name; });
  }

 private:
  std::shared_ptr<NodeImpl> make(const std::string& name, std::vector<std::string> named,
                                 std::chrono::milliseconds lease) {
    NodeOptions options;
    options.name = name;
    options.transports = std::move(named);
    options.lease = lease;
    options.heartbeat = lease / 5;
    if (name == "b") options.trace = trace_;
    options.grantsOnly = grantsOnly_;
    return must(NodeImpl::create(options, [&](const auto&, const auto&) -> Result<TransportSet> {
      TransportSet set;
      set.missing = missing_;
      for (auto& one : transports_) {
        auto made = must(fakes::createInProcess(one.wire, name == "a" ? one.a : one.b));
        if (name == "b") made = fakes::makeFaulty(std::move(made), one.faults);
        set.ready.push_back(std::move(made));
      }
      return set;
    }));
  }

  std::vector<FakeTransport> transports_;
  std::vector<TransportSet::Missing> missing_;
  const TraceHook trace_;  // of b
  const bool grantsOnly_;

 public:
  const std::shared_ptr<NodeImpl> a;
  const std::shared_ptr<NodeImpl> b;
  const std::shared_ptr<PeerState> toA;
};

}  // namespace hmc
