#include <sys/resource.h>

#include <barrier>
#include <cstring>
#include <thread>

#include <fmt/core.h>

#include "bench/targets.h"
#include "peer_options.h"

namespace hmc::bench {

namespace {

constexpr size_t kIdlePeers = 32;
constexpr size_t kManyPeers = 64;
constexpr size_t kManyRegions = 1000;

double cpuSeconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// A Node with that many peers, all of them idle.
Result<Node> nodeWithPeers(Session& session, size_t peers) {
  TOOL_ASSIGN(Node node, Node::create(tool::optionsFromEnvironment("bench with peers")));
  TOOL_ASSIGN(std::string listener, node.listen("tcp://127.0.0.1:0"));
  TOOL_TRY(session.request(fmt::format("peers {} {}", peers, listener)).status());
  return node;
}

Status idle(Bench& bench) {
  bench.step(fmt::format("an idle node with {} peers", kIdlePeers));
  TOOL_ASSIGN(Node node, nodeWithPeers(bench.session, kIdlePeers));
  const double before = cpuSeconds();
  auto start = Clock::now();
  (void)node.nextNote(std::chrono::seconds(5));  // none comes
  const double wall = std::chrono::duration<double>(Clock::now() - start).count();
  const double share = (cpuSeconds() - before) / wall;
  if (node.peers().size() != kIdlePeers) return Status(Code::failed, "the idle Node lost peers");
  TOOL_TRY(bench.session.request("peers 0 none").status());
  bench.run.targets.push_back({fmt::format("idle with {} peers", kIdlePeers),
                               fmt::format("{:.2f} % of a core", share * 100), "", share * 100,
                               "< 1 %", share < 0.01});
  return Status();
}

Status manyPeers(Bench& bench) {
  Session& session = bench.session;
  bench.step(fmt::format("put 8 B among {} peers and {} regions", kManyPeers, kManyRegions));
  TOOL_TRY(session.request(fmt::format("regions {} 4096", kManyRegions)).status());
  TOOL_ASSIGN(auto alone, session.path("ipc"));
  TOOL_ASSIGN(Node node, nodeWithPeers(session, kManyPeers));
  std::vector<LocalRegion> locals;
  std::vector<RemoteRegion> remotes;
  TOOL_ASSIGN(Peer server, node.connect(session.address()));
  for (size_t i = 0; i < kManyRegions; ++i) {
    TOOL_ASSIGN(LocalRegion local, node.allocate(fmt::format("local {}", i), 4096));
    locals.push_back(std::move(local));
    TOOL_ASSIGN(RemoteRegion remote, server.open(fmt::format("region {}", i)));
    remotes.push_back(std::move(remote));
  }
  // The same code for both, because one nanosecond is a sixth of a put.
  auto put = [](const RemoteRegion& remote, const LocalRegion& local) {
    return [&remote, &local] { return remote.put(local, 0, 0, 8); };
  };
  TOOL_ASSIGN(Compared compared, compare(put(remotes.back(), locals.back()),
                                         put(alone->remote, alone->local), bench.plan.time));
  bench.run.targets.push_back(
      {fmt::format("put 8 B, {} regions, {} peers", kManyRegions, kManyPeers),
       fmt::format("{:.1f} ns", median(compared.ours)),
       fmt::format("one region, one peer {:.1f} ns", median(compared.ceiling)), compared.ratio,
       "<= 1.1 x", compared.ratio <= 1.1});
  return session.request("peers 0 none").status();
}

// Operations per second of `count` threads together.
template <class Job>
Result<double> rate(size_t count, Clock::duration time, const Job& job) {
  std::vector<double> rates(count);
  std::vector<Status> statuses(count);
  std::barrier start(static_cast<ptrdiff_t>(count));
  {
    std::vector<std::jthread> threads;
    for (size_t i = 0; i < count; ++i) {
      threads.emplace_back([&, i] {
        Samples series;
        auto one = [&] { return job(i); };
        start.arrive_and_wait();
        statuses[i] = slice(one, 64, time, series);
        rates[i] = 1e9 / median(series);
      });
    }
  }
  double sum = 0;
  for (size_t i = 0; i < count; ++i) {
    TOOL_TRY(statuses[i]);
    sum += rates[i];
  }
  return sum;
}

// How many times faster N threads are than one, ours beside bare copies.
Status threads(Bench& bench, size_t bytes) {
  Session& session = bench.session;
  const auto time = bench.plan.time / 14;
  const size_t count = std::min<size_t>(usableCores(), SharedMemory::kFlags);
  if (count < 2) return Status();
  bench.step(fmt::format("put {} B by {} threads to {} peers", bytes, count, count));
  std::vector<std::unique_ptr<Path>> paths;
  for (size_t i = 0; i < count; ++i) {
    TOOL_ASSIGN(auto path, session.path("ipc", fmt::format("region {}", i)));
    paths.push_back(std::move(path));
  }
  auto ours = [&](size_t i) { return paths[i]->remote.put(paths[i]->local, 0, 0, bytes); };
  auto bare = [&](size_t i) {
    std::memcpy(session.shared().data() + i * (64 << 10), paths[i]->local.data(), bytes);
    session.shared().flag(static_cast<int>(i)).store(1, std::memory_order_release);
    return Status();
  };
  Samples speedups;
  Samples itsSpeedups;
  Samples ratios;
  for (int i = 0; i < 7; ++i) {
    TOOL_ASSIGN(double itsOne, rate(1, time, bare));
    TOOL_ASSIGN(double ourOne, rate(1, time, ours));
    TOOL_ASSIGN(double itsAll, rate(count, time, bare));
    TOOL_ASSIGN(double ourAll, rate(count, time, ours));
    speedups.push_back(ourAll / ourOne);
    itsSpeedups.push_back(itsAll / itsOne);
    ratios.push_back(speedups.back() / itsSpeedups.back());
  }
  const double ratio = median(ratios);
  bench.run.targets.push_back({fmt::format("{} threads to {} peers, {} B", count, count, bytes),
                               fmt::format("{:.2f} x one thread", median(speedups)),
                               fmt::format("memcpy {:.2f} x", median(itsSpeedups)), ratio,
                               ">= 0.9 x", ratio >= 0.9});
  return Status();
}

}  // namespace

Status measureScaling(Bench& bench) {
  TOOL_TRY(manyPeers(bench));
  TOOL_TRY(threads(bench, 8));
  TOOL_TRY(threads(bench, 4096));
  return idle(bench);
}

}  // namespace hmc::bench
