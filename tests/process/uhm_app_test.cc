#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "peer.h"

// uhm_server and uhm_client, as users run them.
namespace hmc::test {
namespace {

using testing::HasSubstr;
using testing::Not;

class UhmApp : public testing::Test {
 protected:
  UhmApp() {
    std::string pattern = testing::TempDir() + "uhmXXXXXX";
    folder_ = mkdtemp(pattern.data());
  }
  ~UhmApp() override { std::filesystem::remove_all(folder_); }

  // A program whose output goes to a file of its name. Both use the same two ports.
  Process start(const std::string& name, const std::string& arguments,
                const Process::Environment& environment = {}) const {
    std::filesystem::remove(folder_ / (name + ".txt"));
    const std::string line = "cd " + folder_.string() + " && exec " HMC_UHM_APP "/" + name +
                             ports_ + arguments + " > " + name + ".txt 2>&1";
    return Process({"sh", "-c", line}, environment);
  }
  std::string output(const std::string& name) const { return contents(name + ".txt"); }
  std::string contents(const std::string& file) const {
    std::ostringstream all;
    all << std::ifstream(folder_ / file).rdbuf();
    return all.str();
  }
  std::string folder() const { return folder_.string(); }

  void expectVerified(const std::string& mode, const std::string& options,
                      const Process::Environment& environment = {}) const {
    Process server = start("uhm_server", " --mode " + mode + " --buffer 1MiB", environment);
    Process client =
        start("uhm_client", " --mode " + mode + " --buffer 1MiB" + options, environment);
    EXPECT_EQ(client.finish(), 0) << mode << "\n" << output("uhm_client");
    EXPECT_EQ(server.finish(), 0) << mode << "\n" << output("uhm_server");
    EXPECT_THAT(output("uhm_client"), HasSubstr("verified: every byte of"));
    EXPECT_THAT(output("uhm_server"), HasSubstr("verified: every byte of"));
    for (const char* line : {"\nmemory:", "\ntransport: ", "\ntimed: "})
      EXPECT_THAT(output("uhm_client"), HasSubstr(line));
  }
  // Rows of the CSV of that mode.
  std::vector<std::string> rows(const std::string& mode) const {
    std::istringstream lines(contents("performanceTest_client.csv"));
    std::vector<std::string> found;
    for (std::string line; std::getline(lines, line);) {
      if (line.rfind(mode + ",", 0) == 0) found.push_back(line);
    }
    return found;
  }

  const std::string ports_ =
      " --data-port " + std::to_string(freePort()) + " --ctrl-port " + std::to_string(freePort());

 private:
  std::filesystem::path folder_;
};

constexpr const char* kModes[] = {"uhm", "rdma_cpu", "g2h2g", "serial", "ucx", "pipeline"};
const Process::Environment kFake = {{"HMC_MEMORY_PLUGIN", HMC_FAKE_PLUGIN}};

TEST_F(UhmApp, verifiesEveryModeAndAddsItToTheTable) {
  for (const char* mode : kModes) {
    expectVerified(mode, " --sizes 0,1,1000,32KiB,1MiB --repeats 3 --warmups 1");
    EXPECT_EQ(rows(mode).size(), 5U) << contents("performanceTest_client.csv");
  }
  EXPECT_THAT(contents("performanceTest_client.csv"),
              testing::StartsWith("Mode,Data Size (MB),Time(us),Bandwidth(Gbps)\nuhm,0,"));
  EXPECT_THAT(rows("g2h2g").back(), testing::MatchesRegex("g2h2g,1,[0-9.]+,[0-9.e+-]+"));
}

TEST_F(UhmApp, verifiesEveryModeOnAnAccelerator) {
  for (const char* mode : kModes) {
    expectVerified(mode, " --sizes 1,1000,700001 --repeats 1 --warmups 0", kFake);
    const bool onHost = mode == std::string("rdma_cpu") || mode == std::string("ucx");
    EXPECT_THAT(output("uhm_client"), HasSubstr(onHost ? "host memory" : "cuda:0 (fake cuda)"));
  }
}

TEST_F(UhmApp, sendsMoreThanTheBufferHolds) {
  for (const char* mode : {"uhm", "g2h2g", "serial"})
    expectVerified(mode, " --sizes 3MiB --repeats 1 --warmups 0");
  Process client = start("uhm_client", " --mode rdma_cpu --buffer 1MiB --sizes 3MiB");
  EXPECT_EQ(client.finish(), 1);
  EXPECT_THAT(output("uhm_client"), HasSubstr("uhm_client: 3145728 bytes do not fit"));
}

TEST_F(UhmApp, takesTheDocumentedVariables) {
  const Process::Environment both = {{"SERVER_IP", "127.0.0.2"}, {"CLIENT_IP", "127.0.0.1"},
                                     {"NUM_CHANNELS", "2"},      {"PIPELINE_CHUNK", "1000"},
                                     {"PIPELINE_INFLIGHT", "3"}, {"CTRL_UDS_DIR", folder()}};
  auto with = [&](const char* self, const char* peer) {
    Process::Environment all = both;
    all["SELF_RANK"] = self;
    all["PEER_RANK"] = peer;
    return all;
  };
  Process server = start("uhm_server", " --mode pipeline", with("7", "9"));
  Process client = start("uhm_client", " --mode pipeline --sizes 10001", with("9", "7"));
  EXPECT_EQ(client.finish(), 0) << output("uhm_client");
  EXPECT_EQ(server.finish(), 0) << output("uhm_server");
  EXPECT_THAT(output("uhm_server"), HasSubstr("listening on 127.0.0.2:"));
}

TEST_F(UhmApp, endsWithASentenceWhenTheOtherSideIsKilled) {
  for (const char* mode : {"g2h2g", "rdma_cpu"}) {
    for (bool serverDies : {true, false}) {
      const std::string options = std::string(" --mode ") + mode;
      Process server = start("uhm_server", options);
      Process client = start("uhm_client", options + " --sizes 1MiB --repeats 1000000");
      ASSERT_TRUE(eventually([&] {
        return output("uhm_client").find("timed:") != std::string::npos;
      })) << output("uhm_client");
      (serverDies ? server : client).kill();
      EXPECT_EQ((serverDies ? client : server).finish(), 1) << mode;
      const std::string left = serverDies ? "uhm_client" : "uhm_server";
      EXPECT_THAT(output(left), HasSubstr("\n" + left + ": "));
      EXPECT_THAT(output(left), Not(HasSubstr("verified: every byte")));
    }
  }
}

TEST_F(UhmApp, refusesAServerOfAnotherMode) {
  Process server = start("uhm_server", " --mode uhm");
  Process client = start("uhm_client", " --mode serial");
  EXPECT_EQ(client.finish(), 1);
  EXPECT_EQ(server.finish(), 1);
  EXPECT_THAT(output("uhm_client"), HasSubstr("the server runs --mode uhm, and we --mode serial"));
}

TEST_F(UhmApp, saysWhatIsWrongWithAnOption) {
  auto expectRefused = [&](const std::string& arguments, const std::string& sentence,
                           const Process::Environment& environment = {}) {
    EXPECT_EQ(start("uhm_client", arguments, environment).finish(), 2) << arguments;
    EXPECT_THAT(output("uhm_client"), HasSubstr("uhm_client: " + sentence));
  };
  expectRefused(" --mode gpu",
                "--mode: \"gpu\" is none of uhm, rdma_cpu, g2h2g, serial, ucx, pipeline");
  expectRefused(" --sizes 1,2MB", "--sizes: \"2MB\" is no size");
  expectRefused(" --sizes 1,,2", "--sizes: \"\" is no size");
  expectRefused(" --buffer 99999999999GiB", "--buffer: \"99999999999GiB\" is no size");
  expectRefused(" --channels 17", "--channels: 17 is not 1 to 16");
  expectRefused("", "NUM_CHANNELS: 0 is not 1 to 16", {{"NUM_CHANNELS", "0"}});
  expectRefused(" --size 1", "there is no option \"--size\"");
  expectRefused(" --mode", "--mode: the value is missing");
}

TEST_F(UhmApp, listsItsOptions) {
  for (const char* name : {"uhm_server", "uhm_client"}) {
    EXPECT_EQ(start(name, " --help").finish(), 0);
    EXPECT_THAT(output(name), HasSubstr("CTRL_UDS_DIR"));
  }
}

}  // namespace
}  // namespace hmc::test
