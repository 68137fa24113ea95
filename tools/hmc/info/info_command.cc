#include <memory>

#include <fmt/core.h>

#include "commands.h"
#include "info/info.h"

namespace hmc::tool {

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

}  // namespace hmc::tool
