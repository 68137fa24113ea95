#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <map>
#include <string>

#include <nlohmann/json.hpp>

#include "bench/run.h"
#include "tools/fake_host.h"
#include "tools/hmc_command.h"

// `hmc bench pool` as a whole, with times too short to mean anything.

namespace hmc::tool {
namespace {

using nlohmann::json;
using testing::HasSubstr;

class BenchPool : public FakeHost {
 protected:
  const std::string quiet_ = "-u HMC_MEASUREMENTS -u LD_LIBRARY_PATH HMC_LOG=error HOME=" + root();
  const std::string driver_ =
      quiet_ + " CUDA_VISIBLE_DEVICES=0,1 LD_LIBRARY_PATH=" HMC_FAKE_LIBCUDA;

  // The rows by "what limit", and that the exit status is theirs.
  static std::map<std::string, json> rowsOf(const std::string& arguments,
                                            const std::string& environment) {
    const Outcome outcome =
        hmcCommand("bench pool --seconds 0.002 --json " + arguments, environment);
    EXPECT_TRUE(json::accept(outcome.output)) << outcome.output;
    const json run = json::parse(outcome.output, nullptr, /*allow_exceptions=*/false);
    std::map<std::string, json> rows;
    bool missed = false;
    for (const json& target : run["targets"]) {
      rows[target["what"].get<std::string>() + " " + target["limit"].get<std::string>()] = target;
      missed = missed || target["met"] == json(false);
    }
    EXPECT_EQ(outcome.status, missed ? 1 : 0);
    return rows;
  }
  static void expectJudged(const json& row, bool judged) {
    EXPECT_EQ(row["met"].is_boolean(), judged) << row;
  }
};

TEST_F(BenchPool, measuresCopiesMembersBarriersAndTheStore) {
  auto rows = rowsOf("", quiet_ + " HMC_SECRET=shared");
  for (const char* what :
       {"H2G 8 B <= 60 ns", "G2H 64 MiB <= 1.05 x", "H2G 1 MiB, tcp >= 0.97 x",
        "61 x 128 KiB + 61 x 16 KiB, tcp >= 0.9 x", "a tcp peer: descriptors <= 3",
        "join with 8 members <= 20 ms", "leave with 8 members <= 20 ms",
        "a killed member is noticed <= 100 ms", "barrier of 8 ranks, by store round trips <= 10 x",
        "allgather of 64 KiB from 8 ranks, all together >= 0.5 x"}) {
    ASSERT_EQ(rows.count(what), 1U) << what;
    expectJudged(rows[what], true);
    EXPECT_GT(rows[what]["ratio"].get<double>(), 0) << rows[what];
  }
  const std::string requests = "barrier of 8 ranks through the store: requests of each <= 10";
  ASSERT_EQ(rows.count(requests), 1U);
  EXPECT_GE(rows[requests]["ratio"].get<double>(), 2) << "each rank arrives and waits";
  EXPECT_TRUE(rows[requests]["met"].get<bool>()) << rows[requests];
  // Ranks that wait for each other's cores are shown, and not judged.
  const bool enough = bench::usableCores() >= 8;
  for (const char* what :
       {"barrier of 8 ranks <= 20 us", "barrier of 8 ranks through the store <= 10 x",
        "allgather of 64 KiB from 8 ranks, each >= 0.5 x"}) {
    ASSERT_EQ(rows.count(what), 1U) << what;
    expectJudged(rows[what], enough);
    EXPECT_EQ(
        rows[what]["against"].get<std::string>().find("cores for 8 ranks") == std::string::npos,
        enough);
  }
  const bool etcd = access("/usr/bin/etcd", X_OK) == 0;
  for (const char* what :
       {"store, set by 1000 clients >= 0.5 x", "store, get by 1000 clients >= 0.5 x"}) {
    ASSERT_EQ(rows.count(what), 1U) << what;
    expectJudged(rows[what], etcd);
    EXPECT_THAT(rows[what]["against"].get<std::string>(), HasSubstr("etcd "));
  }
}

TEST_F(BenchPool, aStoreWithoutAnEtcdBesideItIsNotJudged) {
  auto rows = rowsOf("", quiet_ + " PATH=" + root());
  const json row = rows["store, get by 1000 clients >= 0.5 x"];
  expectJudged(row, false);
  EXPECT_EQ(row["against"], "etcd is not installed: apt install etcd-server");
  EXPECT_THAT(row["measured"].get<std::string>(), HasSubstr("requests/s"));
}

TEST_F(BenchPool, measuresSlotsOfADeviceBesideTheDriversOwnCopies) {
  auto rows = rowsOf("--memory cuda:0", driver_);
  ASSERT_EQ(rows.size(), 2U);
  for (const char* what : {"64 MiB, cuda:0 to cuda:0 >= 0.95 x",
                           "61 x 128 KiB + 61 x 16 KiB, cuda:0 to cuda:0 >= 0.8 x"}) {
    ASSERT_EQ(rows.count(what), 1U) << what;
    expectJudged(rows[what], true);
    EXPECT_THAT(rows[what]["against"].get<std::string>(), HasSubstr("bare copy "));
  }
}

TEST_F(BenchPool, refusesADeviceThatIsNotThere) {
  const Outcome outcome = hmcCommand("bench pool --seconds 0.002 --memory cuda:7", driver_);
  EXPECT_EQ(outcome.status, 1);
  EXPECT_THAT(outcome.output, testing::StartsWith("hmc: "));
  EXPECT_THAT(outcome.output, HasSubstr("cuda:7"));
  expectHmc("bench pool --memory gpu", 2, {"--memory", "\"gpu\""});
}

}  // namespace
}  // namespace hmc::tool
