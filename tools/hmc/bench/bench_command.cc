#include <memory>

#include <fmt/core.h>

#include "bench/against/competitors.h"
#include "bench/bench.h"
#include "bench/pool_bench.h"
#include "bench/server.h"
#include "commands.h"
#include "peer_options.h"

namespace hmc::tool {

namespace {

constexpr size_t kSmallest = 1;
constexpr size_t kLargest = size_t{16} << 30;

struct BenchCommandOptions {
  bench::BenchOptions bench;
  bench::ServerOptions server;
  std::string listen;
};

int run(BenchCommandOptions& options) {
  if (options.bench.smallest > options.bench.largest) {
    throw CLI::ValidationError(
        "--from", fmt::format("{} is more than --to {}: sizes double from --from up to --to",
                              options.bench.smallest, options.bench.largest));
  }
  // Batches need 16 MiB, targets of host memory 64. Those of devices make do with what there is.
  const bool needsMore = options.bench.targets && options.bench.session.memory.isHost();
  const size_t usual = options.bench.firstPut ? 0 : options.bench.largest;
  const size_t bytes = std::max(usual, size_t{needsMore ? 64U : 16U} << 20);
  if (options.listen.empty()) {
    options.bench.session.bytes = bytes;
    options.bench.session.connect =
        options.bench.session.connect.empty() ? "" : withScheme(options.bench.session.connect);
    return bench::runBench(options.bench);
  }
  options.server.address = withScheme(options.listen);
  options.server.bytes = bytes;
  return bench::serveBench(options.server, /*forAPerson=*/true);
}

std::string competitorNames() {
  std::string names;
  for (const auto& competitor : bench::allCompetitors())
    names += (names.empty() ? "" : ", ") + competitor.name + " (" + competitor.what + ")";
  return names;
}

CLI::Validator aCompetitor() {
  std::vector<std::string> names{""};  // --against alone
  for (const auto& competitor : bench::allCompetitors()) names.push_back(competitor.name);
  return CLI::IsMember(names);
}

void addWhatToMeasure(CLI::App& bench, BenchCommandOptions& options) {
  bench.add_option("--transport", options.bench.transports, "Only these, for example ipc,tcp")
      ->delimiter(',')
      ->check(aTransport());
  addDevice(bench, "--memory", options.bench.session.memory,
            "Where our memory lies: cpu, or a device such as cuda:0");
  addDevice(bench, "--peer-memory", options.bench.session.peerMemory,
            "Where the other side's memory lies");
  addSize(bench, "--from", options.bench.smallest, kSmallest, kLargest,
          "Smallest transfer in bytes, or as 4KiB; sizes double");
  addSize(bench, "--to", options.bench.largest, kSmallest, kLargest,
          "Largest transfer in bytes, or as 64MiB");
  addSeconds(bench, "--seconds", options.bench.seconds, 0.001, 60,
             "Time for each measurement and its ceiling");
  bench.add_option("--window", options.bench.window, "Transfers in flight, for bandwidth")
      ->capture_default_str()
      ->check(CLI::Range(1, 1024));
  bench.add_flag("--verify", options.bench.verify, "Compare the bytes at both ends as well");
  auto* targets =
      bench.add_flag("--targets", options.bench.targets,
                     "Instead of the sweep: every target of docs/performance.md, met or missed");
  bench.add_flag("--bars", options.bench.targets)->group("");  // its earlier name
  auto* against = bench
                      .add_option("--against", options.bench.against,
                                  "Competitors beside us, all or some of: " + competitorNames())
                      ->delimiter(',')
                      ->check(aCompetitor())
                      ->expected(0, -1);
  bench
      .add_flag("--all-paths", options.bench.allPaths,
                "Instead of the sweep: each size over every transport, and whether a Node chooses "
                "the fastest")
      ->excludes(targets)
      ->excludes(against);
  bench
      .add_flag("--protections", options.bench.protections,
                "Instead of the sweep: what checksums and TLS cost over tcp, beside plain tcp")
      ->excludes(targets)
      ->excludes(against)
      ->excludes(bench.get_option("--all-paths"))
      ->excludes(bench.get_option("--memory"))
      ->excludes(bench.get_option("--peer-memory"));
  bench
      .add_flag("--first-put", options.bench.firstPut,
                "Instead of the sweep: the first put of all of a new region beside later ones; "
                "sizes from 1GiB to 4GiB unless they are named")
      ->excludes(targets)
      ->excludes(against)
      ->excludes(bench.get_option("--all-paths"))
      ->excludes(bench.get_option("--protections"))
      ->excludes(bench.get_option("--memory"))
      ->excludes(bench.get_option("--peer-memory"));
}

void addWhereTo(CLI::App& bench, BenchCommandOptions& options) {
  auto* csv = bench.add_flag("--csv", options.bench.csv, "Print CSV instead of tables");
  bench.add_flag("--json", options.bench.json, "Print JSON instead of tables")->excludes(csv);
  bench.get_option("--all-paths")->excludes(csv);
  bench
      .add_option_function<std::string>(
          "--plot",
          [](const std::string& file) {
            throw CLI::ValidationError(
                "--plot", "pictures are drawn by Python: python3 -m hmc bench --plot " + file);
          })
      ->group("");
  bench
      .add_option("--save", options.bench.save,
                  "Add the times to this file; Nodes choose by it where HMC_MEASUREMENTS names it")
      ->type_name("FILE");
  auto* connect = bench
                      .add_option("--connect", options.bench.session.connect,
                                  "Measure to the `hmc bench --listen` at HOST:PORT")
                      ->type_name("HOST:PORT")
                      ->check(anAddress())
                      ->excludes(bench.get_option("--protections"))
                      ->excludes(bench.get_option("--first-put"));
  bench
      .add_option("--listen", options.listen,
                  "Serve a --connect from another host at HOST:PORT; port 0 picks one")
      ->type_name("HOST:PORT")
      ->excludes(connect)
      ->excludes(bench.get_option("--memory"))  // the other side names both
      ->excludes(bench.get_option("--peer-memory"));
}

}  // namespace

void addBench(CLI::App& app, int& exitStatus) {
  auto options = std::make_shared<BenchCommandOptions>();
  auto* bench = app.add_subcommand(
      "bench",
      "Measures how fast each transport is: latency, bandwidth, batches and tags, each beside the "
      "best that this machine can do, measured in the same run.");
  addWhatToMeasure(*bench, *options);
  addWhereTo(*bench, *options);
  bench->footer(
      "GB is 1e9 bytes. 100 % is the ceiling: memcpy, a bare flag in shared memory, a raw socket.\n"
      "Examples:\n"
      "  hmc bench                              # two processes on this machine\n"
      "  hmc bench --transport tcp --to 1048576\n"
      "  hmc bench --targets --against          # the targets, with competitors beside us\n"
      "  hmc bench --memory cuda:0 --peer-memory cuda:0\n"
      "  hmc bench --all-paths --save FILE      # is the fastest transport chosen?\n"
      "  hmc bench --json > sweep.json          # draw it: python3 -m hmc bench --from-json\n"
      "                                         #   sweep.json --plot sweep.png\n"
      "  hmc bench --listen 0.0.0.0:5001        # on one host; on the other:\n"
      "  hmc bench --connect HOST:5001");
  bench->callback([options, bench, &exitStatus] {
    if (!bench->get_subcommands().empty()) return;
    options->bench.compare = bench->count("--against") > 0;
    if (options->bench.firstPut && bench->count("--to") == 0) {
      if (bench->count("--from") == 0) options->bench.smallest = size_t{1} << 30;
      options->bench.largest = std::max(options->bench.smallest, size_t{4} << 30);
    }
    // Targets of devices need more than those of host memory.
    if (options->bench.targets && !options->bench.session.memory.isHost() &&
        bench->count("--to") == 0) {
      options->bench.largest = size_t{256} << 20;
    }
    std::erase(options->bench.against, "");  // what --against alone leaves there
    exitStatus = run(*options);
  });

  auto poolOptions = std::make_shared<bench::PoolBenchOptions>();
  auto* pool = bench->add_subcommand(
      "pool",
      "Measures what a pool is made of: copies, joins, leaves, barriers and the store, each beside "
      "the best that this machine can do.");
  addSeconds(*pool, "--seconds", poolOptions->seconds, 0.001, 60,
             "Time for each measurement and its ceiling");
  addDevice(*pool, "--memory", poolOptions->memory,
            "A device such as cuda:0: measure slots on it instead");
  pool->add_flag("--json", poolOptions->json, "Print JSON instead of tables");
  pool->callback([poolOptions, &exitStatus] {
    keepLogToErrors();
    exitStatus = bench::runPoolBench(*poolOptions);
  });

  auto memberOptions = std::make_shared<bench::PoolMemberOptions>();
  auto* member = app.add_subcommand("bench-pool-member", "Another member of the pool")->group("");
  member->add_option("--store", memberOptions->store)->required();
  member->add_option("--name", memberOptions->name)->required();
  member->add_option("--bytes", memberOptions->bytes)->required();
  member->add_option("--transport", memberOptions->transport);
  addDevice(*member, "--memory", memberOptions->memory, "");
  member->callback(
      [memberOptions, &exitStatus] { exitStatus = bench::servePoolMember(*memberOptions); });

  auto rankOptions = std::make_shared<bench::PoolRankOptions>();
  auto* rank = app.add_subcommand("bench-pool-rank", "Another rank of a barrier")->group("");
  rank->add_option("--store", rankOptions->store)->required();
  rank->add_option("--rank", rankOptions->rank)->required();
  rank->add_option("--ranks", rankOptions->ranks)->required();
  rank->callback([rankOptions, &exitStatus] { exitStatus = bench::servePoolRank(*rankOptions); });

  auto* server =
      app.add_subcommand("bench-server", "The other process of the benchmark")->group("");
  server->add_option("--bytes", options->server.bytes)->required();
  server->add_option("--shared", options->server.shared)->required();
  server->callback([options, &exitStatus] {
    exitStatus = bench::serveBench(options->server, /*forAPerson=*/false);
  });
}

}  // namespace hmc::tool
