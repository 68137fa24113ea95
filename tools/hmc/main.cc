#include <algorithm>
#include <memory>
#include <numeric>
#include <vector>

#include <fmt/core.h>

#include "commands.h"
#include "help/man_page.h"
#include "help/wrapped_help.h"
#include "hmc/version.h"

namespace {

// How many letters have to be changed, added or left out.
size_t distance(const std::string& a, const std::string& b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t changed = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, changed});
    }
  }
  return row[b.size()];
}

// The commands that --help lists.
std::vector<std::string> commandsOf(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* sub :
       app.get_subcommands([](const CLI::App* one) { return !one->get_group().empty(); })) {
    names.push_back(sub->get_name());
  }
  return names;
}

std::string unknownCommand(const CLI::App& app, const std::string& word) {
  const auto names = commandsOf(app);
  std::string list;
  for (const auto& name : names) list += (list.empty() ? "" : ", ") + name;
  auto closest = std::min_element(names.begin(), names.end(), [&](const auto& a, const auto& b) {
    return distance(word, a) < distance(word, b);
  });
  if (!word.empty() && closest != names.end() && distance(word, *closest) <= 2) {
    return fmt::format("hmc: there is no command \"{}\"\nDid you mean: hmc {}\n", word, *closest);
  }
  return fmt::format(
      "hmc: {}\nThe commands are {}; `hmc COMMAND --help` explains one.\nTry: hmc demo\n",
      word.empty() ? "a command is missing" : "there is no command \"" + word + "\"", list);
}

// The answer to a wrong command line: what is wrong, and what to type instead.
std::string usageAdvice(const CLI::App* app, const CLI::Error& error) {
  const auto chosen = app->get_subcommands();
  if (chosen.empty()) {
    const auto rest = app->remaining();
    return unknownCommand(*app, rest.empty() ? "" : rest.front());
  }
  const CLI::App* command = chosen.back();
  std::string name = command->get_name();
  for (auto deeper = command->get_subcommands(); !deeper.empty();
       deeper = command->get_subcommands()) {
    command = deeper.back();
    name += " " + command->get_name();
  }
  std::string examples = command->get_footer();
  examples.erase(0, std::min(examples.find("Examples:"), examples.size()));
  return fmt::format("hmc {}: {}\n{}\n`hmc {} --help` lists the options.\n", name, error.what(),
                     examples, name);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"HMC moves bytes between any two memories, on one host or across hosts.", "hmc"};
  app.set_version_flag("--version", std::string("hmc ") + hmc::kVersion);
  app.require_subcommand(1);
  app.failure_message(usageAdvice);
  app.formatter(std::make_shared<hmc::tool::WrappedHelp>());
  app.footer("`hmc COMMAND --help` explains a command with examples.\n" +
             std::string(hmc::tool::kExitStatuses) +
             "\n\n"
             "Examples:\n"
             "  hmc demo      # see two processes move memory over each transport\n"
             "  hmc doctor    # find out what this host lacks");
  int exitStatus = 0;
  hmc::tool::addDemo(app, exitStatus);
  hmc::tool::addBench(app, exitStatus);
  hmc::tool::addLitmus(app, exitStatus);
  hmc::tool::addInfo(app, exitStatus);
  hmc::tool::addDoctor(app, exitStatus);
  hmc::tool::addExplain(app, exitStatus);
  hmc::tool::addStore(app, exitStatus);
  hmc::tool::addPool(app, exitStatus);
  hmc::tool::addHelpFiles(app, exitStatus);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    // Help and version end here, too, with 0.
    return app.exit(error) == 0 ? 0 : hmc::tool::kUsageError;
  }
  return exitStatus;
}
