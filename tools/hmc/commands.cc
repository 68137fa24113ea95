#include "commands.h"

#include <memory>

#include <fmt/core.h>

#include "demo/demo.h"
#include "explain/explain.h"
#include "info/info.h"
#include "litmus/litmus.h"
#include "litmus/rounds.h"
#include "peer_options.h"

// The command lines of the small commands.
namespace hmc::tool {

void addDemo(CLI::App& app, int& exitStatus) {
  struct DemoOptions {
    size_t bytes = size_t{64} << 20;
    std::string transport;
  };
  auto options = std::make_shared<DemoOptions>();
  auto* demo = app.add_subcommand(
      "demo", "Two processes exchange bytes over every transport that works here.");
  demo->footer(
      "Examples:\n"
      "  hmc demo\n"
      "  hmc demo --bytes 1000000");
  demo->add_option("--bytes", options->bytes,
                   "How many bytes to move each way, also as 4KiB or 64MiB")
      ->capture_default_str()
      ->transform(CLI::AsSizeValue(false))
      ->check(CLI::Range(size_t{1}, size_t{1} << 34));
  demo->callback([options, &exitStatus] {
    keepLogToErrors();
    exitStatus = runDemo(options->bytes);
  });

  auto* server = app.add_subcommand("demo-server", "The other process of the demo")->group("");
  server->add_option("--transport", options->transport)->required();
  server->add_option("--bytes", options->bytes)->required();
  server->callback(
      [options, &exitStatus] { exitStatus = serveDemo(options->transport, options->bytes); });
}

void addExplain(CLI::App& app, int& exitStatus) {
  auto options = std::make_shared<ExplainOptions>();
  auto* explain = app.add_subcommand(
      "explain", "Says which transport serves a peer, why not the others, and what a put takes.");
  explain
      ->add_option("address", options->address,
                   "Where the peer listens: host:port, tcp://host:port or unix:///path")
      ->required();
  explain
      ->add_option_function<std::string>(
          "--kind",
          [options](const std::string& text) {
            const Status parsed = parseDevice(text, options->local);
            if (!parsed.ok()) throw CLI::ValidationError("--kind", parsed.message());
          },
          "Our memory: a kind that hmc info lists, and a number: cpu, cuda, cuda:1")
      ->default_str("cpu");
  explain->add_option("--size", options->size, "Bytes of one put; 4KiB and 64MiB are understood")
      ->capture_default_str()
      ->transform(CLI::AsSizeValue(false));
  explain->add_option("--timeout", options->seconds, "Seconds to wait for the peer")
      ->capture_default_str()
      ->check(CLI::Range(0.1, 600.0));
  explain->footer(
      "The peer's secret is taken from HMC_SECRET.\n\n"
      "Examples:\n"
      "  hmc explain worker-3:5001\n"
      "  hmc explain worker-3:5001 --kind cuda:0 --size 64MiB");
  explain->callback([options, &exitStatus] { exitStatus = runExplain(*options); });
}

void addInfo(CLI::App& app, int& exitStatus) {
  auto json = std::make_shared<bool>(false);
  auto* info = app.add_subcommand(
      "info",
      "Shows this build, its memory and transports, and every setting and where it came from.");
  info->add_flag("--json", *json, "Print it as JSON");
  info->footer(
      "Examples:\n"
      "  hmc info\n"
      "  HMC_LEASE_MS=60000 hmc info    # shows what the environment changes");
  info->callback([json, &exitStatus] {
    const Info collected = collectInfo();
    fmt::print("{}{}", *json ? toJson(collected) : toText(collected), *json ? "\n" : "");
    exitStatus = 0;
  });
}

void addLitmus(CLI::App& app, int& exitStatus) {
  auto options = std::make_shared<LitmusOptions>();
  auto address = std::make_shared<std::string>();
  auto* litmus = app.add_subcommand(
      "litmus", "Tries whether a signal ever arrives before the bytes that it is about.");
  litmus->add_option("--rounds", options->rounds, "How often each promise is tried; in steps of 32")
      ->capture_default_str()
      ->check(CLI::Range(uint64_t{64}, uint64_t{1} << 40));
  litmus->add_option("--transport", options->transport, "One of those that hmc info lists");
  auto* listen = litmus->add_option("--listen", *address, "Serve clients of other hosts there");
  litmus->add_option("--connect", options->connect, "A host where hmc litmus --listen runs")
      ->excludes(listen);
  litmus->footer(
      "Examples:\n"
      "  hmc litmus\n"
      "  hmc litmus --rounds 1000000 --transport tcp\n"
      "  hmc litmus --listen 10.0.0.1:5001     # on one host; on the other:\n"
      "  hmc litmus --connect 10.0.0.1:5001");
  litmus->callback([options, address, &exitStatus] {
    keepLogToErrors();
    options->rounds -= options->rounds % litmus::kBatch;
    exitStatus = address->empty() ? runLitmus(*options) : serveLitmus(withScheme(*address));
  });
  auto* server = app.add_subcommand("litmus-server", "The other process")->group("");
  server->callback([&exitStatus] { exitStatus = serveLitmus("tcp://127.0.0.1:0"); });
}

}  // namespace hmc::tool
