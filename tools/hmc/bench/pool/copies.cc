#include <malloc.h>

#include <cstdlib>
#include <filesystem>

#include <fmt/core.h>

#include "bench/pool/rows.h"
#include "bench/report/units.h"
#include "bench/server.h"
#include "bench/session.h"
#include "bench/targets.h"
#include "peer_options.h"

namespace hmc::bench {

namespace {

constexpr size_t kSlot = 64 * kMiB;
constexpr size_t kServed = 64;

// A pool of two, and memory of ours beside it.
struct Pair {
  static Result<Pair> join(PoolBench& bench, const std::string& name,
                           const std::string& transport) {
    const PoolMemberOptions options{"", name, kSlot, transport, Device()};
    TOOL_TRY(bench.others.add(options));
    TOOL_ASSIGN(auto pool, Pool::join(bench.others.store.address, poolOptions(options)));
    TOOL_ASSIGN(const PoolSlot slot, pool.slot(pool.rank() == 0 ? 1 : 0));
    return Pair{std::move(pool), static_cast<char*>(slot.address), std::vector<char>(kSlot, 1)};
  }
  Job put(size_t bytes) {
    return [this, bytes] { return pool.copy(slot, own.data(), bytes); };
  }
  Job get(size_t bytes) {
    return [this, bytes] { return pool.copy(own.data(), slot, bytes); };
  }
  // One block of a KV cache: apart from each other in the slot, side by side in our memory.
  Job putFragments() {
    return [this, copies = fragmentCopies(slot, own.data())]() -> Status {
      TOOL_ASSIGN(auto ticket, pool.startCopy(copies));
      return ticket.wait();
    };
  }

  Pool pool;
  char* slot;
  std::vector<char> own;
};

Job bareCopyOf(void* to, const void* from, size_t bytes) {
  return [=] {
    std::memcpy(to, from, bytes);
    std::atomic_signal_fence(std::memory_order_seq_cst);
    return Status();
  };
}

Status copies(PoolBench& bench, Pair& pair) {
  for (bool put : {true, false}) {
    const std::string way = put ? "H2G " : "G2H ";
    bench.step(way + "8 B");
    TOOL_ASSIGN(const Compared small,
                compare(put ? pair.put(8) : pair.get(8), bareCopyOf(pair.slot, pair.own.data(), 8),
                        bench.time));
    Target target = timeAtMost(way + "8 B", small, "bare store", 60);
    target.limit = "<= 60 ns";
    target.met = median(small.ours) <= 60;
    bench.run.targets.push_back(target);
    for (size_t bytes : {64 * kKiB, kMiB, kSlot}) {
      const std::string what = way + sizeText(bytes);
      bench.step(what);
      TOOL_ASSIGN(const Compared one, compare(put ? pair.put(bytes) : pair.get(bytes),
                                              put ? bareCopyOf(pair.slot, pair.own.data(), bytes)
                                                  : bareCopyOf(pair.own.data(), pair.slot, bytes),
                                              bench.time));
      bench.run.targets.push_back(timeAtMost(what, one, "memcpy", 1.05));
    }
  }
  return Status();
}

Status fragments(PoolBench& bench, Pair& pair, const std::string& transport) {
  const std::string what = fragmentsText(transport);
  bench.step(what);
  TOOL_ASSIGN(const Compared compared,
              compare(pair.putFragments(), pair.put(kFragmentBytes), 2 * bench.time));
  bench.run.targets.push_back(
      rateAtLeast(what, compared, "one piece", 0.9, bandwidthOf(kFragmentBytes)));
  return Status();
}

// Additions over memory that fits into the second-level cache.
Status pointers(PoolBench& bench, Pair& pair) {
  constexpr size_t kBytes = 256 * kKiB;
  bench.step("loads and stores through the address");
  auto increment = [](char* memory) {
    return [words = reinterpret_cast<uint64_t*>(memory)] {
      for (size_t i = 0; i < kBytes / sizeof(uint64_t); ++i) words[i] += i;
      std::atomic_signal_fence(std::memory_order_seq_cst);
      return Status();
    };
  };
  TOOL_ASSIGN(const Compared compared,
              compare(increment(pair.slot), increment(pair.own.data()), bench.time));
  bench.run.targets.push_back(
      timeAtMost("loads and stores through the address", compared, "own memory", 1.05));
  return Status();
}

// What a process holds while others use its memory.
struct Held {
  static Result<Held> now() {
    Held held;
    std::error_code failed;
    auto entries = [&](const char* folder) {
      const std::filesystem::directory_iterator all(folder, failed);
      return static_cast<double>(std::distance(all, std::filesystem::directory_iterator()));
    };
    held.descriptors = entries("/proc/self/fd");
    held.threads = entries("/proc/self/task");
    if (failed) return Status(Code::failed, "/proc: " + failed.message());
    const struct mallinfo2 heap = mallinfo2();
    held.bytes = static_cast<double>(heap.uordblks + heap.hblkhd);
    return held;
  }
  double descriptors = 0;
  double threads = 0;
  double bytes = 0;
};

// A Node whose memory many peers write to over tcp. What all of them share is there with the first.
Status servingMany(PoolBench& bench, Session& session) {
  bench.step(fmt::format("serving {} peers", kServed));
  NodeOptions options = tool::optionsFromEnvironment("bench pool");
  options.transports = {"tcp"};
  TOOL_ASSIGN(Node node, Node::create(options));
  TOOL_ASSIGN(const LocalRegion region, node.allocate(kRegion, 4096));
  TOOL_ASSIGN(const std::string listener, node.listen("tcp://127.0.0.1:0"));
  TOOL_TRY(session.request(fmt::format("use 1 {}", listener)).status());
  TOOL_ASSIGN(const Held one, Held::now());
  TOOL_ASSIGN(const std::string took, session.request(fmt::format("use {} {}", kServed, listener)));
  TOOL_ASSIGN(const Held all, Held::now());
  if (node.peers().size() != kServed) {
    return Status(Code::failed,
                  fmt::format("{} peers came instead of {}", node.peers().size(), kServed));
  }
  TOOL_TRY(session.request("use 0 none").status());
  const double more = kServed - 1;
  auto perPeer = [&](const char* what, double value, double limit, const char* unit) {
    bench.run.targets.push_back({fmt::format("a tcp peer: {}", what),
                                 fmt::format("{:.1f}{}", value, unit), "", value,
                                 fmt::format("<= {:.0f}{}", limit, unit), value <= limit});
  };
  perPeer("memory of who serves it", (all.bytes - one.bytes) / more / kKiB, 16, " KiB");
  perPeer("descriptors", (all.descriptors - one.descriptors) / more, 3, "");
  perPeer("threads", (all.threads - one.threads) / more, 0, "");
  perPeer("connecting and opening", std::strtod(took.c_str(), nullptr) / 1e6, 4, " ms");
  return Status();
}

// To a Node in the process of the pair's other member, from the same memory of ours into memory of
// the same kind: how fast the kernel copies depends on where memory lies, and how fast bytes arrive
// on which core the other process runs.
Result<Path> nodesPath(PoolBench& bench, Pair& pair, const std::string& transport) {
  NodeOptions options = tool::optionsFromEnvironment("bench pool");
  options.transports = {transport};
  TOOL_ASSIGN(Node node, Node::create(options));
  TOOL_ASSIGN(LocalRegion local, node.registerMemory("own", pair.own.data(), pair.own.size()));
  TOOL_ASSIGN(Peer peer, node.connect(bench.others.nodeOfLast()));
  TOOL_ASSIGN(RemoteRegion remote, peer.open(kRegion));
  return Path{std::move(node), std::move(peer), std::move(local), std::move(remote)};
}

// Beside the engine's own put over the same transport.
Status betweenHosts(PoolBench& bench) {
  TOOL_ASSIGN(Pair pair, Pair::join(bench, "tcp", "tcp"));
  TOOL_TRY(pair.pool.registerMemory(pair.own.data(), pair.own.size()));
  TOOL_ASSIGN(const Path path, nodesPath(bench, pair, "tcp"));
  for (size_t bytes : {kMiB, kSlot}) {
    const std::string what = "H2G " + sizeText(bytes) + ", tcp";
    bench.step(what);
    TOOL_ASSIGN(const Compared compared,
                compare(pair.put(bytes), OneTransfer{path, true, bytes}, 8 * bench.time));
    bench.run.targets.push_back(
        rateAtLeast(what, compared, "Node's put", 0.97, bandwidthOf(bytes)));
  }
  TOOL_TRY(fragments(bench, pair, "tcp"));
  TOOL_ASSIGN(auto session, Session::open({}));
  return servingMany(bench, *session);
}

}  // namespace

Status measurePoolCopies(PoolBench& bench) {
  {
    TOOL_ASSIGN(Pair pair, Pair::join(bench, "mapped", ""));
    TOOL_TRY(copies(bench, pair));
    TOOL_TRY(pointers(bench, pair));
    TOOL_TRY(fragments(bench, pair, "mapped"));
  }
  return betweenHosts(bench);
}

}  // namespace hmc::bench
