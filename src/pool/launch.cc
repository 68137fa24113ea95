#include "pool/launch.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>

#include "base/environment.h"
#include "base/error.h"

namespace hmc::pool {

namespace {

// A launcher, known by the variable that gives the rank.
struct Launcher {
  const char* name;
  const char* rank;
  const char* size;       // null: it tells its processes nothing of it
  const char* localSize;  // the same on this host; null: unknown
};

// A process may have the variables of several: those of the inner one count. So Slurm, within
// whose jobs others run, comes late, and Kubernetes last.
constexpr Launcher kTorchrun{"torchrun", "RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE"};
constexpr Launcher kOpenMpi{"mpirun", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
                            "OMPI_COMM_WORLD_LOCAL_SIZE"};
constexpr Launcher kPmi{"mpiexec", "PMI_RANK", "PMI_SIZE", "MPI_LOCALNRANKS"};
constexpr Launcher kPmix{"a PMIx launcher", "PMIX_RANK", nullptr, nullptr};
constexpr Launcher kSlurm{"srun", "SLURM_PROCID", "SLURM_NTASKS", nullptr};
constexpr Launcher kKubernetes{"a Kubernetes indexed job", "JOB_COMPLETION_INDEX", nullptr,
                               nullptr};

// Stores of launchers get a port below those that the kernel gives away by itself.
constexpr uint32_t kFirstPort = 10000;
constexpr uint32_t kPorts = 20000;
constexpr uint32_t kMostPort = 65535;

class LaunchReader {
 public:
  explicit LaunchReader(const Environment& environment) : environment_(environment) {}

  Result<Launch> read() {
    HMC_TRY(readPlace());
    HMC_TRY(readStore());
    return launch_;
  }

 private:
  // An empty one counts as not set.
  std::optional<std::string> text(const char* name) const {
    auto value = environment_(name);
    if (value && value->empty()) value.reset();
    return value;
  }
  bool has(const char* name) const { return text(name).has_value(); }
  Result<std::optional<uint32_t>> number(const char* name) const {
    const auto value = name == nullptr ? std::nullopt : text(name);
    if (!value) return std::optional<uint32_t>();
    HMC_ASSIGN(const uint32_t found, numberIn(name, *value));
    return std::optional<uint32_t>(found);
  }

  const Launcher* launcher() const {
    // RANK alone is a word that others use, too.
    if (has(kTorchrun.rank) && has(kTorchrun.size)) return &kTorchrun;
    if (has(kOpenMpi.rank)) return &kOpenMpi;
    // Slurm speaks PMI and PMIx as well, but says more in variables of its own.
    const bool slurms = text("PMIX_NAMESPACE").value_or("").rfind("slurm.", 0) == 0;
    if (has(kPmi.rank) && (has(kPmi.localSize) || !has(kSlurm.rank))) return &kPmi;
    if (has(kPmix.rank) && !slurms) return &kPmix;
    if (has(kSlurm.rank)) return &kSlurm;
    if (has(kPmix.rank)) return &kPmix;
    if (has(kKubernetes.rank)) return &kKubernetes;
    return nullptr;
  }

  // Rank and size.
  Status readPlace() {
    const char* rankFrom = variable::kPoolRank.name;
    const char* sizeFrom = variable::kPoolSize.name;
    HMC_ASSIGN(launch_.rank, number(rankFrom));
    HMC_ASSIGN(launch_.size, number(sizeFrom));
    const Launcher* found = launcher();
    if (found != nullptr) {
      launch_.launcher = found->name;
      HMC_TRY(readHosts(*found));
      if (!launch_.rank) {
        rankFrom = found->rank;
        HMC_ASSIGN(launch_.rank, number(rankFrom));
      }
      if (!launch_.size && found->size != nullptr) {
        sizeFrom =
            found == &kSlurm && has("SLURM_STEP_NUM_TASKS") ? "SLURM_STEP_NUM_TASKS" : found->size;
        HMC_ASSIGN(launch_.size, number(sizeFrom));
      }
    }
    return checkPlace(rankFrom, sizeFrom);
  }

  Status checkPlace(const char* rankFrom, const char* sizeFrom) const {
    if (launch_.size == 0U) {
      return error(Code::invalidArgument, "{}=\"0\": there is at least one rank", sizeFrom);
    }
    if (!launch_.rank || !launch_.size || *launch_.rank < *launch_.size) return Status();
    return error(Code::invalidArgument, "{}=\"{}\": ranks are 0 to {}, because {}=\"{}\"", rankFrom,
                 *launch_.rank, *launch_.size - 1, sizeFrom, *launch_.size);
  }

  Status readHosts(const Launcher& found) {
    HMC_ASSIGN(const auto all, number(found.size));
    HMC_ASSIGN(const auto local, number(found.localSize));
    const char* hosts = has("SLURM_STEP_NUM_NODES") ? "SLURM_STEP_NUM_NODES" : "SLURM_NNODES";
    HMC_ASSIGN(const auto count, number(&found == &kSlurm ? hosts : nullptr));
    launch_.severalHosts = (all && local && *local < *all) || (count && *count > 1);
    oneHost_ = all && local && *local == *all;
    return Status();
  }

  Status readStore() {
    if (const auto said = text(variable::kPoolStore.name)) {
      launch_.store = *said;
      launch_.severalHosts = false;
      return Status();
    }
    if (has("MASTER_ADDR")) return readMaster();
    const auto job = text("PMIX_NAMESPACE");
    if (oneHost_ && job) {
      launch_.store = socketOf(*job);
      return Status();
    }
    if (has("SLURM_JOB_ID") && (has("SLURM_STEP_NODELIST") || has("SLURM_JOB_NODELIST")))
      return readSlurmStore();
    return noStore();
  }

  // torch's own store listens at that port.
  Status readMaster() {
    const std::string host = *text("MASTER_ADDR");
    HMC_ASSIGN(const auto port, number("MASTER_PORT"));
    if (!port) {
      return error(Code::invalidArgument,
                   "MASTER_ADDR=\"{}\" is set, but MASTER_PORT is not: set both, or {} to the "
                   "store's address, tcp://host:port",
                   host, variable::kPoolStore.name);
    }
    if (*port == 0 || *port > kMostPort) {
      return error(Code::invalidArgument, "MASTER_PORT=\"{}\": ports are 1 to {}", *port,
                   kMostPort);
    }
    setStore(host, *port);
    return Status();
  }

  // Rank 0 runs on the first host of the step.
  Status readSlurmStore() {
    HMC_ASSIGN(const auto job, number("SLURM_JOB_ID"));
    HMC_ASSIGN(const auto step, number("SLURM_STEP_ID"));
    const char* list = has("SLURM_STEP_NODELIST") ? "SLURM_STEP_NODELIST" : "SLURM_JOB_NODELIST";
    setStore(firstHost(*text(list)), *job + step.value_or(0));
    return Status();
  }

  Status noStore() const {
    const char* variable = variable::kPoolStore.name;
    if (launch_.launcher.empty()) {
      return error(Code::invalidArgument,
                   "no store was named, and the environment names none: name one, set {} to its "
                   "address (tcp://host:port), or start the program with `hmc pool run`, torchrun, "
                   "mpirun or srun",
                   variable);
    }
    return error(Code::invalidArgument,
                 "{} gave this process a rank, but no store's address: set {} to tcp://host:port, "
                 "where rank 0 runs or `hmc store` does",
                 launch_.launcher, variable);
  }

  void setStore(const std::string& host, uint32_t number) {
    const bool brackets = host.find(':') != std::string::npos && host.front() != '[';
    launch_.store = fmt::format("tcp://{}{}{}:{}", brackets ? "[" : "", host, brackets ? "]" : "",
                                kFirstPort + number % kPorts);
  }

  // Of a job on one host: nobody else can have it.
  std::string socketOf(std::string job) const {
    std::replace_if(
        job.begin(), job.end(),
        [](unsigned char letter) { return std::isalnum(letter) == 0 && letter != '.'; }, '-');
    const auto folder = text("XDG_RUNTIME_DIR");
    return fmt::format("unix://{}/hmc-pool-{}.sock", folder.value_or("/tmp"), job);
  }

  // "gpu[03-07,12]-ib,login1": gpu03-ib.
  static std::string firstHost(const std::string& list) {
    std::string host;
    for (size_t i = 0; i < list.size() && list[i] != ','; ++i) {
      if (list[i] != '[') {
        host += list[i];
        continue;
      }
      const size_t end = std::min(list.find(']', i), list.size());
      host += list.substr(i + 1, std::min(list.find_first_of("-,", i), end) - i - 1);
      i = end;
    }
    return host;
  }

  const Environment& environment_;
  Launch launch_;
  bool oneHost_ = false;  // the launcher says so
};

}  // namespace

Result<Launch> readLaunch(const Environment& environment) {
  return LaunchReader(environment).read();
}

std::optional<std::string> environmentVariable(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr) return std::nullopt;
  return std::string(value);
}

Result<Launch> readLaunch() {
  return readLaunch(environmentVariable);
}

}  // namespace hmc::pool
