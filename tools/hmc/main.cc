#include "commands.h"
#include "hmc/version.h"

int main(int argc, char** argv) {
  CLI::App app{"HMC moves bytes between any two memories, on one host or across hosts."};
  app.set_version_flag("--version", std::string("hmc ") + hmc::kVersion);
  app.require_subcommand(1);
  int exitStatus = 0;
  hmc::tool::addDemo(app, exitStatus);
  hmc::tool::addBench(app, exitStatus);
  CLI11_PARSE(app, argc, argv);
  return exitStatus;
}
