#include <signal.h>
#include <sys/stat.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>

#include <fmt/core.h>

#include "commands.h"
#include "hmc/store.h"
#include "try.h"

namespace hmc::tool {

namespace {

struct StoreCommand {
  std::string listen = "tcp://127.0.0.1:0";
  std::string secretFile;
  size_t capacity = StoreServerOptions().capacity;
  std::string data;
  bool insecure = false;
};

Result<std::string> readSecret(const std::string& path) {
  if (path.empty()) {
    const char* given = std::getenv("HMC_SECRET");
    return std::string(given == nullptr ? "" : given);
  }
  std::ifstream file(path, std::ios::binary);
  std::string secret{std::istreambuf_iterator<char>(file), {}};
  while (!secret.empty() && (secret.back() == '\n' || secret.back() == '\r')) secret.pop_back();
  // An unreadable file must never mean: no secret.
  if (!secret.empty()) return secret;
  return Status(Code::invalidArgument, "the secret file " + path + " is empty or cannot be read");
}

Result<StoreServer> start(const StoreCommand& command) {
  StoreServerOptions options;
  options.capacity = command.capacity;
  options.data = command.data;
  options.insecure = command.insecure;
  TOOL_ASSIGN(options.secret, readSecret(command.secretFile));
  return StoreServer::start(command.listen, options);
}

int runStore(const StoreCommand& command) {
  sigset_t ends;
  sigemptyset(&ends);
  sigaddset(&ends, SIGINT);
  sigaddset(&ends, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &ends, nullptr);
  const auto server = start(command);
  if (!server.ok()) {
    fmt::print(stderr, "hmc store: {}\n", server.status().message());
    return server.status().code() == Code::invalidArgument ? kUsageError : 1;
  }
  fmt::print("{}\n", server->address());
  std::fflush(stdout);
  int signal = 0;
  sigwait(&ends, &signal);
  return 0;
}

}  // namespace

void addStore(CLI::App& app, int& exitStatus) {
  auto options = std::make_shared<StoreCommand>();
  auto* store =
      app.add_subcommand("store", "Serves the store where the members of a pool find each other.");
  store
      ->add_option("--listen", options->listen,
                   "tcp://host:port or unix:///path; port 0 picks one, and it is printed")
      ->type_name("ADDRESS")
      ->capture_default_str();
  store
      ->add_option("--secret-file", options->secretFile,
                   "A file with the secret that clients need; by default HMC_SECRET")
      ->type_name("FILE");
  addSize(*store, "--capacity", options->capacity, 1, size_t{1} << 60,
          "Bytes of all keys and values; 4GiB works");
  store
      ->add_option("--data", options->data,
                   "A folder where keys and leases outlive this process; by default they do not")
      ->type_name("DIR");
  store->add_flag("--insecure", options->insecure,
                  "Without a secret: serve also where other hosts reach it, and everybody there");
  store->footer(
      "It prints its address and serves until SIGINT or SIGTERM.\n\n"
      "Examples:\n"
      "  hmc store --listen tcp://0.0.0.0:7000 --secret-file /etc/hmc/secret\n"
      "  hmc store --listen tcp://10.0.0.1:7000 --data /var/lib/hmc --secret-file secret\n"
      "  HMC_SECRET=... hmc store --listen unix:///run/user/1000/hmc.sock");
  store->callback([options, &exitStatus] { exitStatus = runStore(*options); });
}

}  // namespace hmc::tool
