#include "pool/launch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "fakes/must.h"
#include "pool/served_store.h"

namespace hmc::pool {
namespace {

using testing::HasSubstr;
using Variables = std::map<std::string, std::string>;

Result<Launch> read(const Variables& variables) {
  return readLaunch([&](const char* name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    if (found == variables.end()) return std::nullopt;
    return found->second;
  });
}

struct Case {
  const char* what;
  Variables variables;
  Launch expected;
};

const Variables kOnSlurm{{"SLURM_PROCID", "0"},
                         {"SLURM_NTASKS", "2"},
                         {"SLURM_JOB_ID", "20042"},
                         {"SLURM_STEP_ID", "3"},
                         {"SLURM_STEP_NODELIST", "gpu[03-07,12]-ib,login1"}};

Variables with(Variables base, const Variables& more) {
  for (const auto& [name, value] : more) base[name] = value;
  return base;
}

const Variables kTorch{{"RANK", "3"},
                       {"WORLD_SIZE", "8"},
                       {"LOCAL_RANK", "3"},
                       {"LOCAL_WORLD_SIZE", "8"},
                       {"MASTER_ADDR", "10.0.0.1"},
                       {"MASTER_PORT", "29500"}};
const Variables kMpirun{{"OMPI_COMM_WORLD_RANK", "1"},
                        {"OMPI_COMM_WORLD_SIZE", "4"},
                        {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"},
                        {"PMIX_RANK", "1"},
                        {"PMIX_NAMESPACE", "prterun-host/7@1"}};

TEST(Launch, IsWhatTheLauncherSays) {
  const Case cases[] = {
      {"hmc pool run",
       {{"HMC_POOL_STORE", "tcp://127.0.0.1:7000"}, {"HMC_POOL_RANK", "2"}, {"HMC_POOL_SIZE", "4"}},
       {"", 2, 4, "tcp://127.0.0.1:7000", false}},
      {"a store alone",
       {{"HMC_POOL_STORE", "unix:///run/store"}},
       {"", std::nullopt, std::nullopt, "unix:///run/store", false}},
      {"torchrun", kTorch, {"torchrun", 3, 8, "tcp://10.0.0.1:19500", false}},
      {"torchrun on two hosts, IPv6, a high port",
       with(kTorch,
            {{"LOCAL_WORLD_SIZE", "4"}, {"MASTER_ADDR", "fd00::1"}, {"MASTER_PORT", "41234"}}),
       {"torchrun", 3, 8, "tcp://[fd00::1]:11234", true}},
      {"ours before the launcher's, each for itself",
       with(kTorch, {{"HMC_POOL_RANK", "5"}, {"HMC_POOL_STORE", "tcp://a:1"}}),
       {"torchrun", 5, 8, "tcp://a:1", false}},
      {"hmc pool run within a job on several hosts",
       with(kOnSlurm, {{"SLURM_NNODES", "2"},
                       {"HMC_POOL_STORE", "tcp://127.0.0.1:7000"},
                       {"HMC_POOL_RANK", "2"},
                       {"HMC_POOL_SIZE", "4"}}),
       {"srun", 2, 4, "tcp://127.0.0.1:7000", false}},
      {"an empty variable is none",
       with(kTorch, {{"HMC_POOL_RANK", ""}, {"HMC_POOL_STORE", ""}}),
       {"torchrun", 3, 8, "tcp://10.0.0.1:19500", false}},
      {"mpirun on one host",
       kMpirun,
       {"mpirun", 1, 4, "unix:///tmp/hmc-pool-prterun-host-7-1.sock", false}},
      {"mpirun on one host, with a folder of the user's",
       with(kMpirun, {{"XDG_RUNTIME_DIR", "/run/user/1"}}),
       {"mpirun", 1, 4, "unix:///run/user/1/hmc-pool-prterun-host-7-1.sock", false}},
      {"mpirun within a job of Slurm's",
       with(kOnSlurm, with(kMpirun, {{"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}})),
       {"mpirun", 1, 4, "tcp://gpu03-ib:10045", true}},
      {"mpiexec within a job of Slurm's",
       with(kOnSlurm, {{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}, {"MPI_LOCALNRANKS", "1"}}),
       {"mpiexec", 1, 2, "tcp://gpu03-ib:10045", true}},
      {"srun", kOnSlurm, {"srun", 0, 2, "tcp://gpu03-ib:10045", false}},
      {"srun with PMI",
       with(kOnSlurm, {{"PMI_RANK", "0"}, {"PMI_SIZE", "2"}, {"SLURM_NNODES", "2"}}),
       {"srun", 0, 2, "tcp://gpu03-ib:10045", true}},
      {"srun with PMIx, in a step of a larger job",
       with(kOnSlurm, {{"PMIX_RANK", "0"},
                       {"PMIX_NAMESPACE", "slurm.pmix.20042.3"},
                       {"SLURM_STEP_NUM_TASKS", "1"},
                       {"SLURM_STEP_NODELIST", "rack1n[1-2,4]x[7,9]"}}),
       {"srun", 0, 1, "tcp://rack1n1x7:10045", false}},
      {"srun and the variables that torch's users set",
       with(kOnSlurm, {{"MASTER_ADDR", "n1"}, {"MASTER_PORT", "20000"}}),
       {"srun", 0, 2, "tcp://n1:10000", false}},
      {"another PMIx launcher",
       {{"PMIX_RANK", "7"}, {"PMIX_NAMESPACE", "x"}, {"HMC_POOL_STORE", "tcp://a:1"}},
       {"a PMIx launcher", 7, std::nullopt, "tcp://a:1", false}},
      {"an indexed job",
       {{"JOB_COMPLETION_INDEX", "0"}, {"HMC_POOL_SIZE", "3"}, {"HMC_POOL_STORE", "tcp://a:1"}},
       {"a Kubernetes indexed job", 0, 3, "tcp://a:1", false}},
  };
  for (const Case& one : cases) {
    const auto launch = read(one.variables);
    ASSERT_TRUE(launch.ok()) << one.what << ": " << launch.status().message();
    EXPECT_EQ(launch->launcher, one.expected.launcher) << one.what;
    EXPECT_EQ(launch->rank, one.expected.rank) << one.what;
    EXPECT_EQ(launch->size, one.expected.size) << one.what;
    EXPECT_EQ(launch->store, one.expected.store) << one.what;
    EXPECT_EQ(launch->severalHosts, one.expected.severalHosts) << one.what;
  }
}

TEST(Launch, AnErrorNamesTheVariable) {
  const struct {
    Variables variables;
    const char* says;
  } cases[] = {
      {{}, "set HMC_POOL_STORE to its address"},
      {{{"RANK", "1"}}, "set HMC_POOL_STORE to its address"},
      {with(kTorch, {{"RANK", "abc"}}), "RANK=\"abc\": expected a whole number"},
      {with(kTorch, {{"RANK", "-1"}}), "RANK=\"-1\": expected a whole number"},
      {with(kTorch, {{"RANK", "8"}}), "RANK=\"8\": ranks are 0 to 7, because WORLD_SIZE=\"8\""},
      {with(kTorch, {{"HMC_POOL_SIZE", "3"}}),
       "RANK=\"3\": ranks are 0 to 2, because HMC_POOL_SIZE=\"3\""},
      {with(kTorch, {{"WORLD_SIZE", "0"}}), "WORLD_SIZE=\"0\": there is at least one rank"},
      {with(kTorch, {{"WORLD_SIZE", "8 "}}), "WORLD_SIZE=\"8 \": expected a whole number"},
      {with(kTorch, {{"MASTER_PORT", ""}}), "MASTER_PORT is not: set both, or HMC_POOL_STORE"},
      {with(kTorch, {{"MASTER_PORT", "65536"}}), "MASTER_PORT=\"65536\": ports are 1 to 65535"},
      {with(kTorch, {{"MASTER_PORT", "0"}}), "MASTER_PORT=\"0\": ports are 1 to 65535"},
      {with(kMpirun, {{"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}}),
       "mpirun gave this process a rank, but no store's address: set HMC_POOL_STORE"},
      {{{"PMI_RANK", "0"}, {"PMI_SIZE", "2"}}, "mpiexec gave this process a rank"},
      {with(kOnSlurm, {{"SLURM_JOB_ID", "x"}}), "SLURM_JOB_ID=\"x\""},
      {{{"JOB_COMPLETION_INDEX", "0"}}, "a Kubernetes indexed job gave this process a rank"},
      {{{"JOB_COMPLETION_INDEX", "2"}, {"HMC_POOL_SIZE", "2"}, {"HMC_POOL_STORE", "tcp://a:1"}},
       "JOB_COMPLETION_INDEX=\"2\": ranks are 0 to 1, because HMC_POOL_SIZE=\"2\""},
      {{{"HMC_POOL_STORE", "tcp://a:1"}, {"HMC_POOL_RANK", "one"}}, "HMC_POOL_RANK=\"one\""},
  };
  for (const auto& one : cases) {
    const auto launch = read(one.variables);
    EXPECT_EQ(launch.status().code(), Code::invalidArgument);
    EXPECT_THAT(launch.status().message(), HasSubstr(one.says));
  }
}

TEST(Launch, OptionsWin) {
  const Launch launch{"torchrun", 0, 8, "tcp://127.0.0.1:7000", false};
  const auto plain = test::must(joiningFrom(launch, {}));
  EXPECT_EQ(plain.store, launch.store);
  EXPECT_EQ(plain.options.rank, 0U);
  EXPECT_EQ(plain.options.capacity, 8U);
  EXPECT_TRUE(plain.firstRank);
  PoolOptions options;
  options.rank = 5;
  options.capacity = 16;
  const auto said = test::must(joiningFrom(launch, options));
  EXPECT_EQ(said.options.rank, 5U);
  EXPECT_EQ(said.options.capacity, 16U);
  EXPECT_FALSE(said.firstRank);
}

TEST(Launch, SomebodyMustSayHowManyThereAre) {
  const Launch launch{"a Kubernetes indexed job", 1, std::nullopt, "tcp://127.0.0.1:7000", false};
  EXPECT_THAT(joiningFrom(launch, {}).status().message(), HasSubstr("set HMC_POOL_SIZE, or give"));
  PoolOptions options;
  options.capacity = 2;
  EXPECT_TRUE(joiningFrom(launch, options).ok());
}

TEST(Launch, ALoopbackAddressDoesNotServeSeveralHosts) {
  const Launch launch{"torchrun", 1, 8, "tcp://localhost:19500", true};
  const auto joining = joiningFrom(launch, {});
  EXPECT_THAT(joining.status().message(), HasSubstr("tcp://localhost:19500 is a loopback address"));
  EXPECT_THAT(joining.status().message(), HasSubstr("set HMC_POOL_STORE"));
  PoolOptions options;
  options.listen = "tcp://10.0.0.1:0";
  EXPECT_TRUE(joiningFrom(launch, options).ok());
}

}  // namespace
}  // namespace hmc::pool
