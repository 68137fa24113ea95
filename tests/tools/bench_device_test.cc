#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "tools/fake_host.h"
#include "tools/hmc_command.h"

// `hmc bench` on memory of devices, which are fakes over host memory: the times mean nothing.

namespace hmc::tool {
namespace {

using nlohmann::json;
using testing::HasSubstr;

constexpr const char* kShortOnDevices = "bench --from 8 --to 16 --seconds 0.002 ";
constexpr const char* kTargets =
    "bench --targets --memory cuda:0 --to 16777216 --seconds 0.002 --transport ipc,tcp ";

class BenchDevice : public FakeHost {
 protected:
  const std::string quiet_ = "-u HMC_MEASUREMENTS -u LD_LIBRARY_PATH HMC_LOG=error HOME=" + root();
  // A backend without a driver, and our CUDA backend on a driver that is not NVIDIA's.
  const std::string plugin_ = quiet_ + " HMC_MEMORY_PLUGIN=" HMC_FAKE_PLUGIN;
  const std::string driver_ =
      quiet_ + " CUDA_VISIBLE_DEVICES=0,1 LD_LIBRARY_PATH=" HMC_FAKE_LIBCUDA;

  static json run(const std::string& arguments, const std::string& environment) {
    const Outcome outcome = hmcCommand(arguments + " --json", environment);
    EXPECT_TRUE(json::accept(outcome.output)) << outcome.output;
    return json::parse(outcome.output, nullptr, /*allow_exceptions=*/false);
  }
  static void expectBesideCeiling(const std::string& memory, const std::string& peerMemory,
                                  const std::string& environment, const json& ceiling) {
    const json found = run(std::string(kShortOnDevices) + "--verify --transport ipc --memory " +
                               memory + " --peer-memory " + peerMemory,
                           environment);
    EXPECT_EQ(found["header"]["memory"], memory + " here, " + peerMemory + " there");
    // Two sizes, put and get, one and many in flight; five batches; no tags.
    ASSERT_EQ(found["measurements"].size(), 13U) << found;
    for (const json& one : found["measurements"]) {
      EXPECT_GT(one["value"].get<double>(), 0) << one;
      EXPECT_EQ(one["ceiling"].is_null() ? json() : one["ceiling"]["name"], ceiling) << one;
    }
  }
};

TEST_F(BenchDevice, measuresBesideTheDriversOwnCopiesInEveryDirection) {
  expectBesideCeiling("cuda:0", "cuda:0", driver_, "bare copy");
  expectBesideCeiling("cuda:0", "cpu", driver_, "bare copy");
  expectBesideCeiling("cpu", "cuda:1", driver_, "bare copy");
}

TEST_F(BenchDevice, measuresWithoutCeilingsWhereTheDriverIsMissing) {
  if (dlopen("libcuda.so.1", RTLD_NOW) != nullptr) GTEST_SKIP() << "this host has the driver";
  expectBesideCeiling("cuda:0", "cuda:0", plugin_, json());
  expectHmc(std::string(kShortOnDevices) + "--transport ipc --memory cuda:0", 0,
            {"bare copy: not measured: libcuda.so.1 could not be loaded"}, plugin_);
}

TEST_F(BenchDevice, saysWhichCeilingsItDoesNotKnow) {
  expectHmc(std::string(kShortOnDevices) + "--transport ipc --memory musa:0", 0,
            {"bare copy: not measured: it is known for cuda alone, not for musa"},
            plugin_ + " HMC_FAKE_KIND=musa");
  expectHmc(std::string(kShortOnDevices) + "--transport ipc --memory cuda:0 --peer-memory cuda:1",
            0, {"bare copy: not measured: it is known for one device, not between two"}, driver_);
}

TEST_F(BenchDevice, measuresOtherTransportsBesideTheirOwnHostMemory) {
  const json found =
      run("bench --from 8 --to 8 --seconds 0.002 --transport tcp --memory cuda:0", plugin_);
  ASSERT_FALSE(found["measurements"].empty());
  for (const json& one : found["measurements"])
    EXPECT_EQ(one["ceiling"]["name"], "tcp, host memory") << one;
}

TEST_F(BenchDevice, measuresEveryTarget) {
  const json found = run(kTargets, driver_);
  std::vector<std::string> rows;
  for (const json& target : found["targets"]) {
    rows.push_back(target["what"].get<std::string>() + " " + target["limit"].get<std::string>());
    EXPECT_GT(target["ratio"].get<double>(), 0) << target;
    EXPECT_TRUE(target["met"].is_boolean()) << target;
  }
  // As many bytes as fit into 16 MiB.
  EXPECT_THAT(rows,
              testing::UnorderedElementsAre(
                  "put 8 B, cuda:0 to cuda:0 <= 1.1 x", "put 64 KiB, cuda:0 to cuda:0 <= 1.1 x",
                  "put 1024 blocks of 16 KiB, cuda:0 to cuda:0 >= 0.85 x",
                  "put 8192 blocks of 2 KiB, cuda:0 to cuda:0 >= 0.5 x",
                  "put 1024 blocks of 16 KiB, cuda:0 to cpu >= 0.93 x",
                  "get 1024 blocks of 16 KiB, cpu to cuda:0 >= 0.9 x",
                  "put 16 MiB, cuda:0 to cpu >= 0.97 x", "get 16 MiB, cpu to cuda:0 >= 0.97 x",
                  "put and get 8 MiB at once, cuda:0 and cpu >= 0.9 x",
                  "g2h2g 16 MiB, cuda:0 to cuda:0, beside pipelined >= 0.95 x",
                  "g2h2g 16 MiB, cuda:0 to cuda:0, beside serial >= 1.7 x",
                  "open 64 MiB of cuda:0, put 8 B <= 5 ms",
                  "tcp put 1024 blocks of 16 KiB, cuda:0 to cuda:0 >= 0.9 x",
                  "tcp put 16 MiB, cuda:0 to cuda:0 >= 0.95 x"));
}

TEST_F(BenchDevice, aTargetWhoseCeilingIsMissingIsNeitherMetNorMissed) {
  if (dlopen("libcuda.so.1", RTLD_NOW) != nullptr) GTEST_SKIP() << "this host has the driver";
  const json found = run(std::string(kTargets) + "--transport ipc", plugin_);
  ASSERT_FALSE(found["targets"].empty());
  const json& first = found["targets"][0];
  EXPECT_EQ(first["against"], "");
  EXPECT_TRUE(first["ratio"].is_null()) << first;
  EXPECT_TRUE(first["met"].is_null()) << first;
}

TEST_F(BenchDevice, savesTimesAsThoseOfTheDevice) {
  const std::string file = root() + "/times";
  expectHmc(std::string(kShortOnDevices) + "--transport ipc --memory cuda:0 --save " + file, 0, {},
            plugin_);
  std::ifstream in(file);
  EXPECT_THAT(std::string(std::istreambuf_iterator<char>(in), {}), HasSubstr("ipc cuda put 8 "));
}

TEST_F(BenchDevice, comparesWithThoseThatKnowDevices) {
  expectHmc(std::string(kShortOnDevices) + "--transport ipc --against socket,nixl --memory cuda:0",
            0,
            {"socket: not measured: it is for host memory here", "nixl: python3 is not installed"},
            plugin_ + " PATH=" + root());
}

TEST_F(BenchDevice, refusesADeviceThatIsNotThereBeforeItMeasures) {
  for (const char* option : {"--memory", "--peer-memory"}) {
    const Outcome outcome = hmcCommand(std::string(kShortOnDevices) + option + " cuda:7", plugin_);
    EXPECT_EQ(outcome.status, 1);
    EXPECT_THAT(outcome.output, testing::StartsWith("hmc: ")) << "nothing was measured";
    EXPECT_THAT(outcome.output, HasSubstr("cuda:7"));
    expectHmc(std::string("bench ") + option + " gpu", 2, {option, "\"gpu\""});
  }
  expectHmc(std::string(kShortOnDevices) + "--targets --peer-memory cuda:0", 1, {"--memory"},
            plugin_);
}

}  // namespace
}  // namespace hmc::tool
