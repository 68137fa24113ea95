#include "bench/pool_bench.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <optional>

#include <fmt/core.h>

#include "bench/pool/rows.h"
#include "bench/report/progress.h"
#include "bench/report/report.h"
#include "bench/report/units.h"
#include "bench/server.h"
#include "peer_options.h"

namespace hmc::bench {

namespace {

constexpr uint32_t kCapacity = 16;

// The store and its clients have a thousand connections.
void allowDescriptors() {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

Status measurePool(const PoolBenchOptions& options, Run& run) {
  run.header = describeMachine();
  run.header.emplace_back("method", fmt::format("{} s per measurement, ours and its ceiling in "
                                                "turns, medians",
                                                options.seconds));
  const bool onDevice = !options.memory.isHost();
  if (onDevice) run.header.emplace_back("memory", options.memory.toString());
  TOOL_ASSIGN(auto others, Others::start());
  Progress progress;
  if (onDevice) {
    progress.expect(kPoolDeviceSteps, 2 * options.seconds);
  } else {
    progress.expect(kPoolCopySteps, 2 * options.seconds);
    progress.expect(kPoolMemberSteps, 6);
    progress.expect(kPoolCollectiveSteps, 4);
    progress.expect(kPoolStoreSteps, 10);
  }
  PoolBench bench{
      others,
      std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(options.seconds)),
      [&](const std::string& what) { progress.next(what); }, run};
  if (onDevice) return measurePoolDevice(bench, options.memory);
  TOOL_TRY(measurePoolCopies(bench));
  TOOL_TRY(measurePoolMembers(bench));
  TOOL_TRY(measurePoolCollectives(bench));
  return measurePoolStore(bench);
}

}  // namespace

std::vector<PoolCopy> fragmentCopies(char* to, const char* from) {
  std::vector<PoolCopy> copies;
  size_t at = 0;
  for (size_t size : {kLargeFragment, kSmallFragment}) {
    for (size_t i = 0; i < kFragments; ++i, at += size)
      copies.push_back({to + 2 * at, from + at, size});
  }
  return copies;
}

std::string fragmentsText(const std::string& where) {
  return fmt::format("{} x {} + {} x {}, {}", kFragments, sizeText(kLargeFragment), kFragments,
                     sizeText(kSmallFragment), where);
}

PoolOptions poolOptions(const PoolMemberOptions& options) {
  PoolOptions pool;
  pool.name = options.name;
  pool.capacity = kCapacity;
  (options.memory.isHost() ? pool.hostSize : pool.deviceSize) = options.bytes;
  pool.device = options.memory;
  pool.node = tool::optionsFromEnvironment("bench pool");
  if (!options.transport.empty()) pool.node.transports = {options.transport};
  return pool;
}

Result<Others> Others::start() {
  TOOL_ASSIGN(auto store, tool::startOtherProcess({"store", "--listen", "tcp://127.0.0.1:0"}));
  return Others{std::move(store), {}};
}

Status Others::add(const PoolMemberOptions& options) {
  std::vector<std::string> words{
      "bench-pool-member",          "--store", store.address, "--name", options.name, "--bytes",
      std::to_string(options.bytes)};
  if (!options.transport.empty()) words.insert(words.end(), {"--transport", options.transport});
  if (!options.memory.isHost()) words.insert(words.end(), {"--memory", options.memory.toString()});
  TOOL_ASSIGN(auto member, tool::startOtherProcess(words));
  members.push_back(std::move(member));
  return Status();
}

uint32_t Others::rankOfLast() const {
  return static_cast<uint32_t>(std::stoul(members.back().address));
}

std::string Others::nodeOfLast() const {
  const std::string& told = members.back().address;
  return told.substr(told.find(' ') + 1);
}

int runPoolBench(const PoolBenchOptions& options) {
  allowDescriptors();
  Run run;
  const Status status = measurePool(options, run);
  if (!run.targets.empty()) {
    const std::string text =
        options.json ? jsonText(run) : tableText(run, wantsColour(STDOUT_FILENO));
    std::fwrite(text.data(), 1, text.size(), stdout);
  }
  if (!status.ok()) {
    fmt::print(stderr, "hmc: {}\n", status.message());
    return 1;
  }
  return std::all_of(run.targets.begin(), run.targets.end(),
                     [](const Target& target) { return target.met || !target.compared; })
             ? 0
             : 1;
}

namespace {

// A member, and the Node beside it.
struct Served {
  Pool pool;
  std::optional<Node> node;
  std::optional<LocalRegion> region;
  std::string told;  // rank and address, for Others
};

Result<Served> serve(const PoolMemberOptions& options) {
  const PoolOptions pool = poolOptions(options);
  TOOL_ASSIGN(Pool joined, Pool::join(options.store, pool));
  Served served{std::move(joined), {}, {}, ""};
  served.told = std::to_string(served.pool.rank());
  if (options.transport.empty()) return served;
  TOOL_ASSIGN(Node node, Node::create(pool.node));
  TOOL_ASSIGN(served.region, node.allocate(kRegion, options.bytes));
  TOOL_ASSIGN(const std::string address, node.listen("tcp://127.0.0.1:0"));
  served.told += " " + address;
  served.node = std::move(node);
  return served;
}

}  // namespace

int servePoolMember(const PoolMemberOptions& options) {
  const auto served = serve(options);
  if (!tool::tellParent(served.ok() ? Result<std::string>(served->told)
                                    : Result<std::string>(served.status()))) {
    return 1;
  }
  for (;;) pause();
}

}  // namespace hmc::bench
