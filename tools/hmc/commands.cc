#include "commands.h"

#include <algorithm>
#include <memory>

#include <fmt/core.h>

#include "bench/report/units.h"
#include "demo/demo.h"
#include "doctor/checks.h"
#include "explain/explain.h"
#include "info/info.h"
#include "litmus/litmus.h"
#include "peer_options.h"

// The command lines of the small commands.
namespace hmc::tool {

namespace {

constexpr size_t kMostBytes = size_t{1} << 60;

}  // namespace

CLI::Option* addSize(CLI::App& command, const std::string& name, size_t& bytes, size_t least,
                     size_t most, const std::string& what) {
  std::string standard = bench::sizeText(bytes);
  standard.erase(std::remove(standard.begin(), standard.end(), ' '), standard.end());
  const auto inRange = [least, most](const std::string& text) {
    const bool fits = CLI::Range(least, most)(std::string(text)).empty();
    return fits ? std::string()
                : fmt::format("{} is not from {} to {}", text, bench::sizeText(least),
                              bench::sizeText(most));
  };
  return command.add_option(name, bytes, what)
      ->type_name("SIZE")
      ->transform(CLI::AsSizeValue(false).description(""))
      ->check(inRange)
      ->default_str(standard);
}

CLI::Option* addSeconds(CLI::App& command, const std::string& name, double& seconds, double least,
                        double most, const std::string& what) {
  return command.add_option(name, seconds, what)
      ->capture_default_str()
      ->type_name("SECONDS")
      ->check(CLI::Range(least, most).description(""));
}

CLI::Option* addDevice(CLI::App& command, const std::string& name, Device& device,
                       const std::string& what) {
  return command
      .add_option_function<std::string>(
          name,
          [name, &device](const std::string& text) {
            const Status parsed = parseDevice(text, device);
            if (!parsed.ok()) throw CLI::ValidationError(name, parsed.message());
          },
          what)
      ->type_name("DEVICE")
      ->default_str("cpu");
}

CLI::Validator anAddress() {
  return CLI::Validator(
      [](const std::string& text) { return parsePeerAddress(text).status().message(); }, "");
}

CLI::Validator aTransport() {
  const std::vector<std::string> names{"ipc", "verbs", "ucx", "tcp"};
  return CLI::IsMember(names);
}

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
  addSize(*demo, "--bytes", options->bytes, 1, size_t{1} << 34,
          "How many bytes to move each way, also as 4KiB or 64MiB");
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
      ->type_name("ADDRESS")
      ->check(anAddress())
      ->required();
  addDevice(*explain, "--kind", options->local,
            "Our memory: a kind that hmc info lists, and a number: cpu, cuda, cuda:1");
  addSize(*explain, "--size", options->size, 0, kMostBytes,
          "Bytes of one put, also as 4KiB or 64MiB");
  addSeconds(*explain, "--timeout", options->seconds, 0.1, 600, "Seconds to wait for the peer");
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
  litmus->add_option("--rounds", options->rounds, "How often each promise is tried")
      ->capture_default_str()
      ->check(CLI::Range(uint64_t{1}, uint64_t{1} << 40));
  litmus->add_option("--transport", options->transport, "One of those that hmc info lists")
      ->check(aTransport());
  auto* listen = litmus->add_option("--listen", *address, "Serve clients of other hosts there")
                     ->type_name("HOST:PORT");
  litmus->add_option("--connect", options->connect, "A host where hmc litmus --listen runs")
      ->type_name("HOST:PORT")
      ->check(anAddress())
      ->excludes(listen);
  litmus->footer(
      "Examples:\n"
      "  hmc litmus\n"
      "  hmc litmus --rounds 1000000 --transport tcp\n"
      "  hmc litmus --listen 10.0.0.1:5001     # on one host; on the other:\n"
      "  hmc litmus --connect 10.0.0.1:5001");
  litmus->callback([options, address, &exitStatus] {
    keepLogToErrors();
    exitStatus = address->empty() ? runLitmus(*options) : serveLitmus(withScheme(*address));
  });
  auto* server = app.add_subcommand("litmus-server", "The other process")->group("");
  server->callback([&exitStatus] { exitStatus = serveLitmus("tcp://127.0.0.1:0"); });
}

}  // namespace hmc::tool
