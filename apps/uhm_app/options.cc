#include "options.h"

#include <cstdlib>

#include <CLI/CLI.hpp>

namespace hmc::uhm {

namespace {

constexpr int kUsageError = 2;
constexpr size_t kSmallest = size_t{1} << 5;
constexpr size_t kLargest = size_t{1} << 26;

void addMode(CLI::App& app, Options& options) {
  std::string names;
  for (const Mode& mode : modes()) names += std::string(names.empty() ? "" : ", ") + mode.name;
  app.add_option_function<std::string>(
         "--mode",
         [&options, names](const std::string& name) {
           options.mode = findMode(name);
           if (!options.mode)
             throw CLI::ValidationError("--mode", "\"" + name + "\" is none of " + names);
         },
         "How to move the bytes, the same on both sides: " + names)
      ->default_str(options.mode->name);
}

void addPlaces(CLI::App& app, Options& options) {
  app.add_option("--server-ip", options.serverIp, "Where the server listens")
      ->envname("SERVER_IP")
      ->capture_default_str();
  app.add_option("--client-ip", options.clientIp, "Where the client comes from")
      ->envname("CLIENT_IP")
      ->capture_default_str();
  app.add_option("--tcp-server-ip", options.controlIp, "The same for the control link")
      ->envname("TCP_SERVER_IP")
      ->default_str("as SERVER_IP");
  app.add_option("--ctrl-uds-dir", options.udsDir,
                 "Use a unix socket in this folder for the control link")
      ->envname("CTRL_UDS_DIR");
  app.add_option("--self-rank", options.selfRank, "Our rank")
      ->envname("SELF_RANK")
      ->capture_default_str();
  app.add_option("--peer-rank", options.peerRank, "The other side's rank")
      ->envname("PEER_RANK")
      ->capture_default_str();
  app.add_option("--data-port", options.dataPort, "The server's port for data")
      ->capture_default_str();
  app.add_option("--ctrl-port", options.controlPort, "The server's port for the control link")
      ->capture_default_str();
}

void addTransfer(CLI::App& app, Options& options) {
  app.add_option("--channels", options.channels, "RDMA queue pairs, 1 to 16")
      ->envname("NUM_CHANNELS")
      ->capture_default_str();
  app.add_option("--buffer", options.buffer, "Bytes of a ConnBuffer; 4KiB and 64MiB are understood")
      ->capture_default_str()
      ->transform(CLI::AsSizeValue(false));
  app.add_flag("--host", options.hostOnly, "Use host memory, whatever accelerators there are");
}

void addMeasurement(CLI::App& app, Options& options) {
  app.add_option("--pipeline-chunk", options.chunk, "Bytes of a chunk in mode pipeline; 0: 4 MiB")
      ->envname("PIPELINE_CHUNK")
      ->capture_default_str()
      ->transform(CLI::AsSizeValue(false));
  app.add_option("--pipeline-inflight", options.inflight, "Chunks under way in mode pipeline")
      ->envname("PIPELINE_INFLIGHT")
      ->capture_default_str();
  app.add_option("--sizes", options.sizes, "Bytes of a transfer: 1KiB,64MiB")
      ->delimiter(',')
      ->default_str("32 B to 64 MiB, each twice the one before")
      ->transform(CLI::AsSizeValue(false));
  app.add_option("--repeats", options.repeats, "Transfers that count, of each size")
      ->capture_default_str()
      ->check(CLI::Range(1, 1000000));
  app.add_option("--warmups", options.warmups, "Transfers before them that do not")
      ->capture_default_str();
  app.add_option("--csv", options.csv, "The file that the results are added to")
      ->capture_default_str();
}

}  // namespace

Options parseOptions(Role role, int argc, char** argv) {
  const bool client = role == Role::client;
  Options options;
  (client ? options.selfRank : options.peerRank) = 1;
  CLI::App app{client ? "Sends device memory to uhm_server, and measures it."
                      : "Receives what uhm_client sends and checks every byte.",
               client ? "uhm_client" : "uhm_server"};
  app.footer(client ? "Examples:\n"
                      "  uhm_client --mode uhm          # after `uhm_server --mode uhm`\n"
                      "  uhm_client --mode g2h2g --sizes 1MiB,64MiB --repeats 20"
                    : "Examples:\n  uhm_server --mode uhm");
  addMode(app, options);
  addPlaces(app, options);
  addTransfer(app, options);
  if (client) addMeasurement(app, options);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    std::exit(app.exit(error) == 0 ? 0 : kUsageError);
  }
  if (options.controlIp.empty()) options.controlIp = options.serverIp;
  if (options.sizes.empty()) {
    for (size_t size = kSmallest; size <= kLargest; size *= 2) options.sizes.push_back(size);
  }
  return options;
}

}  // namespace hmc::uhm
