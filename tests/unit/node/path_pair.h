#pragma once

#include <atomic>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "node/node_impl.h"
#include "transport/ipc/ipc.h"
#include "unit/node/node_pair.h"

namespace hmc {

// One of the paths to a peer's memory, and how two Nodes come to take it.
struct PathCase {
  std::string name;
  std::string path;
  std::string transport;
  ipc::IpcOptions options;
  bool allocated = false;  // by the Node, which can be mapped
};

inline std::vector<PathCase> everyPath() {
  return {{"mapped", "mapped", "ipc", {}, true},
          {"processVm", "process_vm", "ipc", {}},
          {"ring", "ring", "ipc", {.allowMapping = false, .allowProcessVm = false}},
          {"tcp", "tcp", "tcp", {}}};
}

inline std::shared_ptr<NodeImpl> makeNode(const std::string& name, const PathCase& with) {
  NodeOptions options = named(name, {with.transport});
  if (with.transport != "ipc") return must(NodeImpl::create(options));
  return must(NodeImpl::create(
      options, [&](const auto&, const TransportNeeds& needs) -> Result<TransportSet> {
        TransportSet set;
        set.ready.push_back(must(ipc::create(needs.fds, with.options)));
        return set;
      }));
}

// Two Nodes in one process that have nothing but that path; b has dialled a.
struct PathPair {
  explicit PathPair(const PathCase& with)
      : a(makeNode("a", with)),
        b(makeNode("b", with)),
        toA(must(b->connect(must(a->listen("tcp://127.0.0.1:0")), {}, kDefaultTimeout))) {}
  ~PathPair() {
    b->close();
    a->close();
  }
  std::shared_ptr<RemoteMapping> open(const std::string& region) const {
    return must(b->open(toA, region, {}, kDefaultTimeout));
  }

  const std::shared_ptr<NodeImpl> a;
  const std::shared_ptr<NodeImpl> b;
  const std::shared_ptr<PeerState> toA;
};

// A thread that puts over and over, also when that fails.
class PuttingThread {
 public:
  PuttingThread(std::shared_ptr<RemoteMapping> remote, std::shared_ptr<LocalMemory> local,
                size_t size, size_t offset = 0)
      : remote_(std::move(remote)),
        local_(std::move(local)),
        size_(size),
        offset_(offset),
        thread_([this](const std::stop_token& stop) { run(stop); }) {}
  ~PuttingThread() { thread_.request_stop(); }

  void await(const std::atomic<int>& count, int more) const {
    const int goal = count.load() + more;
    for (int seen = count.load(); seen < goal; seen = count.load()) count.wait(seen);
  }
  std::atomic<int> done{0};
  std::atomic<int> failed{0};
  Status outcome() {
    thread_.request_stop();
    thread_.join();
    return outcome_;
  }

 private:
  void run(const std::stop_token& stop) {
    for (char value = 1; !stop.stop_requested(); ++value) {
      std::memset(local_->host(), value, size_);
      const Status put = remote_->run(OpKind::put, *local_, 0, offset_, size_, kDefaultTimeout);
      if (!put.ok()) outcome_ = put;
      if (put.ok() && !outcome_.ok()) outcome_ = error(Code::failed, "a put after the end");
      auto& count = put.ok() ? done : failed;
      ++count;
      count.notify_all();
    }
  }

  const std::shared_ptr<RemoteMapping> remote_;
  const std::shared_ptr<LocalMemory> local_;
  const size_t size_;
  const size_t offset_;
  Status outcome_;
  std::jthread thread_;
};

}  // namespace hmc
