#include <memory>

#include "commands.h"
#include "explain/explain.h"
#include "peer_options.h"

namespace hmc::tool {

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

}  // namespace hmc::tool
