#include <cstdlib>
#include <memory>
#include <optional>
#include <string>

#include <fmt/core.h>

#include "commands.h"
#include "hmc/store.h"
#include "pool/guardian.h"
#include "pool/ranks.h"
#include "program.h"

namespace hmc::tool {

namespace {

struct RunCommand {
  RankOptions ranks;
  double grace = 5;
};

int refuse(const std::string& sentence, int status) {
  fmt::print(stderr, "hmc pool run: {}\n", sentence);
  return status;
}

int run(const RunCommand& command) {
  RankOptions ranks = command.ranks;
  if (!ranks.words.empty() && ranks.words.front() == "--") ranks.words.erase(ranks.words.begin());
  if (ranks.words.empty()) {
    return refuse("a program is missing\nTry: hmc pool run -n 2 hmc info", kUsageError);
  }
  if (!findProgram(ranks.words.front())) {
    return refuse(fmt::format("there is no program {}", ranks.words.front()), kUsageError);
  }
  ranks.grace = std::chrono::milliseconds(static_cast<int64_t>(command.grace * 1000));
  std::optional<StoreServer> server;
  if (ranks.store.empty()) {
    StoreServerOptions options;
    if (const char* secret = std::getenv("HMC_SECRET")) options.secret = secret;
    auto started = StoreServer::start("tcp://127.0.0.1:0", options);
    if (!started.ok()) return refuse(started.status().message(), 1);
    server.emplace(*std::move(started));
    ranks.store = server->address();
  }
  return runRanks(ranks);
}

}  // namespace

void addPool(CLI::App& app, int& exitStatus) {
  auto* pool = app.add_subcommand("pool", "Starts the ranks of a program on this host.");
  pool->require_subcommand(1);
  const char* const examples =
      "Examples:\n"
      "  hmc pool run -n 8 ./program --its-option\n"
      "  hmc pool run -n 4 --tag python3 worker.py\n"
      "  hmc pool run -n 2 --store tcp://10.0.0.1:7000 ./program";
  pool->footer(examples);

  auto options = std::make_shared<RunCommand>();
  auto* run = pool->add_subcommand("run", "Starts a program several times, each with a rank.");
  run->add_option("-n,--ranks", options->ranks.count, "How many")
      ->required()
      ->check(CLI::Range(uint32_t{1}, Guardian::kMostGroups));
  run->add_option("--store", options->ranks.store,
                  "A store that runs already; by default this command serves one")
      ->type_name("ADDRESS");
  run->add_flag("--tag", options->ranks.tag, "Put the rank in front of each line of output");
  addSeconds(*run, "--grace", options->grace, 0, 3600,
             "Seconds that ranks have to end after SIGTERM, before SIGKILL");
  // From the first word on that is no option of ours, all words are left over as they are. The
  // library leaves them so after "--", too, if there is an argument, which then takes none.
  run->add_option("program", options->ranks.words, "The program and its arguments")
      ->type_name("PROGRAM")
      ->check([](const std::string&) { return std::string("is left over"); });
  run->validate_positionals();
  run->prefix_command();
  run->footer(
      std::string("What follows the options is the program and its arguments. Each rank has its "
                  "number in HMC_POOL_RANK,\nhow many there are in HMC_POOL_SIZE and the store in "
                  "HMC_POOL_STORE: a Pool that is joined without\nnaming a store takes them. When "
                  "a rank fails, the others are ended, and its status is the command's.\n"
                  "Standard input goes to rank 0, unless it is a terminal. The store's secret is "
                  "HMC_SECRET.\n\n") +
      examples);
  run->callback([options, run, &exitStatus] {
    options->ranks.words = run->remaining();
    exitStatus = tool::run(*options);
  });
}

}  // namespace hmc::tool
