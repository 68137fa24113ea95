#include <memory>

#include <fmt/core.h>

#include "bench/measure.h"
#include "bench/server.h"
#include "commands.h"

namespace hmc::tool {

namespace {

struct Options {
  bench::SessionOptions session;
  bench::ServerOptions server;
  std::string listen;
  std::vector<std::string> transports;
  size_t smallest = 8;
  size_t largest = size_t{64} << 20;
  double seconds = 0.2;
  size_t window = 16;
  bool verify = false;
  bool bars = false;
};

int fail(const Status& status) {
  fmt::print(stderr, "hmc: {}\n", status.message());
  return 1;
}

int runBench(const Options& options) {
  auto session = bench::Session::open(options.session);
  if (!session.ok()) return fail(session.status());
  bench::Plan plan;
  plan.time = std::chrono::duration_cast<bench::Clock::duration>(
      std::chrono::duration<double>(options.seconds));
  plan.window = options.window;
  plan.verify = options.verify;
  for (size_t bytes = options.smallest; bytes <= options.largest; bytes *= 2)
    plan.sizes.push_back(bytes);
  bench::Run run;
  auto step = [](const std::string& what) { fmt::print(stderr, "{}\n", what); };
  if (options.bars) {
    Status status = bench::measureBars(**session, plan, step, run);
    for (const auto& bar : run.bars)
      fmt::print("{:<36} {:>16} {:>36} {:>8.3f} {:>12} {}\n", bar.what, bar.measured, bar.against,
                 bar.ratio, bar.limit, bar.met ? "met" : "MISSED");
    if (!status.ok()) return fail(status);
    return 0;
  }
  for (const auto& transport : options.transports) {
    Status status = bench::measureTransfers(**session, transport, plan, step, run);
    if (status.ok()) status = bench::measureBatches(**session, transport, plan, step, run);
    if (status.ok()) status = bench::measureControl(**session, transport, plan, step, run);
    if (!status.ok()) return fail(status);
  }
  for (const auto& f : run.figures)
    fmt::print("{} {} {} {} {:.2f} / {:.2f}\n", f.section, f.path, f.what, f.bytes, f.value,
               f.ceiling->value);
  return 0;
}

}  // namespace

void addBench(CLI::App& app, int& exitStatus) {
  auto options = std::make_shared<Options>();
  auto* bench =
      app.add_subcommand("bench", "How fast each transport is, beside what this machine can do");
  bench->add_option("--listen", options->listen, "Be the other side, at this address");
  bench->add_option("--connect", options->session.connect, "Measure against that other side");
  bench->add_option("--transport", options->transports)->delimiter(',');
  bench->add_option("--from", options->smallest);
  bench->add_option("--to", options->largest);
  bench->add_option("--seconds", options->seconds);
  bench->add_option("--window", options->window);
  bench->add_flag("--verify", options->verify);
  bench->add_flag("--bars", options->bars);
  bench->callback([options, &exitStatus] { exitStatus = runBench(*options); });

  auto* server =
      app.add_subcommand("bench-server", "The other process of the benchmark")->group("");
  server->add_option("--bytes", options->server.bytes)->required();
  server->add_option("--lines", options->server.lines)->required();
  server->add_option("--secret", options->server.secret);
  server->callback([options, &exitStatus] {
    exitStatus = bench::serveBench(options->server, /*forAPerson=*/false);
  });
}

}  // namespace hmc::tool
