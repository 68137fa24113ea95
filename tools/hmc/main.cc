#include "commands.h"
#include "hmc/version.h"
#include "usage.h"

namespace {
constexpr int kUsageError = 2;
}

int main(int argc, char** argv) {
  CLI::App app{"HMC moves bytes between any two memories, on one host or across hosts.", "hmc"};
  app.set_version_flag("--version", std::string("hmc ") + hmc::kVersion);
  app.require_subcommand(1);
  app.failure_message(hmc::tool::usageAdvice);
  app.footer(
      "`hmc COMMAND --help` explains a command with examples. To begin with:\n"
      "  hmc demo      # see two processes move memory over each transport\n"
      "  hmc doctor    # find out what this host lacks");
  int exitStatus = 0;
  hmc::tool::addDemo(app, exitStatus);
  hmc::tool::addBench(app, exitStatus);
  hmc::tool::addInfo(app, exitStatus);
  hmc::tool::addDoctor(app, exitStatus);
  hmc::tool::addExplain(app, exitStatus);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    // Help and version end here, too, with 0.
    return app.exit(error) == 0 ? 0 : kUsageError;
  }
  return exitStatus;
}
