#include <memory>

#include "commands.h"
#include "demo/demo.h"
#include "quiet.h"

namespace hmc::tool {

namespace {

struct DemoOptions {
  size_t bytes = size_t{64} << 20;
  std::string transport;
};

}  // namespace

void addDemo(CLI::App& app, int& exitStatus) {
  auto options = std::make_shared<DemoOptions>();
  auto* demo = app.add_subcommand(
      "demo", "Two processes exchange bytes over every transport that works here.");
  demo->footer(
      "Examples:\n"
      "  hmc demo\n"
      "  hmc demo --bytes 1000000");
  demo->add_option("--bytes", options->bytes, "How many bytes to move each way")
      ->capture_default_str()
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

}  // namespace hmc::tool
