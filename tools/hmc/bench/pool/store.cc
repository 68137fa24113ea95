#include <poll.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <limits>

#include <fmt/core.h>

#include "bench/pool/rows.h"
#include "bench/raw_socket.h"
#include "bench/targets.h"
#include "peer_options.h"

namespace hmc::bench {

namespace {

constexpr size_t kClients = 1000;
constexpr int kLoads = 3;
constexpr std::chrono::seconds kPatience{60};

// A folder that goes with it. In memory where there is one for that: our store writes nothing to a
// disk, either.
class Folder {
 public:
  static Result<std::unique_ptr<Folder>> make() {
    for (const char* parent : {"/dev/shm", "/tmp"}) {
      std::string name = std::string(parent) + "/hmc_etcd_XXXXXX";
      if (mkdtemp(name.data()) != nullptr) return std::unique_ptr<Folder>(new Folder(name));
    }
    return tool::systemError("make a temporary folder");
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  const std::string& path() const { return path_; }

 private:
  explicit Folder(std::string path) : path_(std::move(path)) {}
  const std::string path_;
};

// One member on loopback, until this is destroyed.
struct Etcd {
  static Result<Etcd> start() {
    TOOL_TRY(tool::needProgram("etcd", "etcd-server"));
    Etcd etcd;
    TOOL_ASSIGN(etcd.folder, Folder::make());
    TOOL_ASSIGN(const uint16_t client, freePort());
    TOOL_ASSIGN(const uint16_t peer, freePort());
    etcd.port = std::to_string(client);
    const std::string own = "http://127.0.0.1:" + etcd.port;
    const std::string others = fmt::format("http://127.0.0.1:{}", peer);
    TOOL_ASSIGN(etcd.program,
                tool::Program::start(
                    {{"etcd", "--name=one", "--data-dir=" + etcd.folder->path(),
                      "--listen-client-urls=" + own, "--advertise-client-urls=" + own,
                      "--listen-peer-urls=" + others, "--initial-advertise-peer-urls=" + others,
                      "--initial-cluster=one=" + others, "--logger=zap", "--log-level=panic"},
                     {}}));
    TOOL_TRY(etcd.awaitAnswer());
    return etcd;
  }
  // It answers once it has made itself the leader.
  Status awaitAnswer() {
    const Deadline deadline(kPatience);
    while (!loadStore({"etcd", port, ""}, 1, std::chrono::milliseconds(1)).ok()) {
      if (!program->running()) return program->finish(deadline).status();
      if (deadline.passed())
        return Status(Code::deadlineExceeded, "etcd does not answer on port " + port);
      poll(nullptr, 0, 20);
    }
    return Status();
  }

  std::unique_ptr<Folder> folder;  // goes last
  std::unique_ptr<tool::Program> program;
  std::string port;
};

std::string requestRate(double nanosecondsEach) {
  return fmt::format("{:.1f} k requests/s", 1e6 / nanosecondsEach);
}

void addStoreRow(PoolBench& bench, const char* what, double StoreLoad::*which,
                 const std::vector<StoreLoad>& ours, const std::vector<StoreLoad>& theirs,
                 const std::string& missing) {
  Compared compared;
  Samples ratios;
  for (size_t i = 0; i < ours.size(); ++i) {
    compared.ours.push_back(ours[i].*which);
    if (i >= theirs.size()) continue;
    compared.ceiling.push_back(theirs[i].*which);
    ratios.push_back(ours[i].*which / theirs[i].*which);
  }
  compared.ratio = ratios.empty() ? std::numeric_limits<double>::quiet_NaN() : median(ratios);
  Target target = rateAtLeast(fmt::format("store, {} by {} clients", what, kClients), compared,
                              "etcd", 0.5, requestRate);
  if (!target.compared) target.against = missing;
  bench.run.targets.push_back(std::move(target));
}

}  // namespace

Result<StoreLoad> loadStore(const LoadedStore& store, size_t clients, Clock::duration time) {
  TOOL_ASSIGN(const std::string program, tool::findOwnFile("libexec/hmc/store_load"));
  const double seconds = std::chrono::duration<double>(time).count();
  TOOL_ASSIGN(const std::string printed,
              tool::runProgram({{program, store.kind, store.where, std::to_string(clients),
                                 std::to_string(seconds)},
                                {"HMC_SECRET=" + store.secret}},
                               kPatience));
  StoreLoad load;
  if (std::sscanf(printed.c_str(), "set %lf get %lf", &load.set, &load.get) != 2)
    return tool::nothingMeasured("store_load", printed);
  return load;
}

Status measurePoolStore(PoolBench& bench) {
  bench.step(fmt::format("the store with {} clients", kClients));
  const Clock::duration length = 2 * bench.time;
  auto etcd = Etcd::start();
  if (!etcd.ok() && etcd.status().code() != Code::notFound) return etcd.status();
  const LoadedStore own{"ours", bench.others.store.address,
                        tool::optionsFromEnvironment("").secret};
  std::vector<StoreLoad> ours;
  std::vector<StoreLoad> theirs;
  for (int i = 0; i < kLoads; ++i) {
    TOOL_ASSIGN(ours.emplace_back(), loadStore(own, kClients, length));
    if (!etcd.ok()) continue;
    TOOL_ASSIGN(theirs.emplace_back(), loadStore({"etcd", etcd->port, ""}, kClients, length));
  }
  const std::string missing = etcd.ok() ? "" : etcd.status().message();
  addStoreRow(bench, "set", &StoreLoad::set, ours, theirs, missing);
  addStoreRow(bench, "get", &StoreLoad::get, ours, theirs, missing);
  return Status();
}

}  // namespace hmc::bench
