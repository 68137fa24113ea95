#include <CLI/CLI.hpp>

#include "demo.h"
#include "hmc/version.h"

int main(int argc, char** argv) {
  CLI::App app{"HMC moves bytes between any two memories, on one host or across hosts."};
  app.set_version_flag("--version", std::string("hmc ") + hmc::kVersion);
  app.require_subcommand(1);

  size_t bytes = size_t{64} << 20;
  auto* demo =
      app.add_subcommand("demo",
                         "Two processes exchange bytes over every transport that works here.\n"
                         "Example: hmc demo --bytes 1000000");
  demo->add_option("--bytes", bytes, "How many bytes to move each way")
      ->capture_default_str()
      ->check(CLI::Range(size_t{1}, size_t{1} << 34));

  std::string transport;
  auto* server = app.add_subcommand("demo-server", "The other process of the demo")->group("");
  server->add_option("--transport", transport)->required();
  server->add_option("--bytes", bytes)->required();

  CLI11_PARSE(app, argc, argv);
  if (demo->parsed()) return hmc::tool::runDemo(bytes);
  return hmc::tool::serveDemo(transport, bytes);
}
