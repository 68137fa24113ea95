#include "transport/ucx/lanes.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

namespace hmc::ucx {

TEST(UcxLanes, theLaneForMessagesIsNamed) {
  EXPECT_EQ(
      printedLane("#\n# UCP endpoint \n#               peer: <no debug data>\n"
                  "#      lane[0]:  1:tcp/lo.0 md[1]   -> md[1]/tcp/sysdev[255] am am_bw#0 wireup\n"
                  "#      am_send: 0..<egr/short>..8185\n"),
      "tcp/lo");
}

TEST(UcxLanes, lanesForOtherPurposesAreNot) {
  EXPECT_EQ(
      printedLane(
          "#  lane[0]:  1:ud_verbs/mlx5_0:1.0 md[1] -> md[1]/ib/sysdev[255] keepalive wireup\n"
          "#  lane[1]:  4:rc_mlx5/mlx5_0:1.0 md[4] -> md[4]/ib/sysdev[0] am am_bw#0\n"),
      "rc_mlx5/mlx5_0:1");
}

TEST(UcxLanes, anInterfaceWithAPointInItsNameKeepsIt) {
  EXPECT_EQ(printedLane("# lane[0]:  1:tcp/eth0.100.0 md[1] -> md[1]/tcp/sysdev[255] am wireup\n"),
            "tcp/eth0.100");
}

TEST(UcxLanes, otherTextHasNone) {
  EXPECT_EQ(printedLane(""), "");
  EXPECT_EQ(printedLane("# UCP endpoint\n# am_send: 0..<egr/short>\n# lane[0]: nothing\n"), "");
}

TEST(UcxLanes, oneOfHardwareIsTheMainLane) {
  EXPECT_EQ(mainLane({}), "");
  EXPECT_EQ(mainLane({"tcp/eth0", "tcp/eth1"}), "tcp/eth0");
  EXPECT_EQ(mainLane({"ud_verbs/mlx5_0:1", "rc_mlx5/mlx5_0:1"}), "rc_mlx5/mlx5_0:1");
}

TEST(UcxLanes, hardwareIsWhatHasReliableConnections) {
  for (const char* lane : {"rc_verbs/rxe0:1", "dc_mlx5/mlx5_0:1"}) {
    EXPECT_TRUE(isHardware(lane)) << lane;
  }
  for (const char* lane : {"ud_verbs/rxe0:1", "tcp/rc_0", ""}) {
    EXPECT_FALSE(isHardware(lane)) << lane;
  }
}

TEST(UcxLanes, hardwareIsThereWhenUcxHasAResourceOfIt) {
  const std::string tcp =
      "#\n# UCP context\n#\n#     component 4  :  ib\n#            md 4  :  component 4  rc_0\n#\n"
      "#      resource 1  :  md 1  dev 1  flags -- tcp/rc_0\n";
  EXPECT_FALSE(hasHardware(tcp));
  EXPECT_FALSE(hasHardware(tcp + "#      resource 2  :  md 4  dev 3  flags -- ud_verbs/rxe0:1\n"));
  EXPECT_TRUE(
      hasHardware(tcp + "#      resource 2  :  md 4  dev 3  flags -- rc_verbs/rxe0:1\n#\n"));
}

TEST(UcxLanes, sharedMemoryThatIsLeftOutIsSaidWithTheFix) {
  const std::string why = slowerBecause("tcp/lo", "1.13.1", "/nowhere", "/nowhere");
  EXPECT_NE(why.find("use ipc"), std::string::npos) << why;
  EXPECT_EQ(slowerBecause("tcp/eth0", "1.13.1", "/nowhere", "/nowhere"), "");
  EXPECT_EQ(slowerBecause("rc_mlx5/mlx5_0:1", "1.13.1", "/nowhere", "/nowhere"), "");
}

TEST(UcxLanes, aMissingModuleIsSaidWhereThereIsADevice) {
  namespace fs = std::filesystem;
  char path[] = "/tmp/hmc_lanes_XXXXXX";
  ASSERT_NE(mkdtemp(path), nullptr);
  const fs::path tree = path;
  fs::create_directories(tree / "devices" / "mlx5_7");
  fs::create_directories(tree / "ucx");
  const std::string why = slowerBecause("tcp/eth0", "1.13.1", tree / "ucx", tree / "devices");
  EXPECT_NE(why.find("mlx5_7"), std::string::npos) << why;
  EXPECT_NE(why.find("libuct_ib.so.0"), std::string::npos) << why;
  std::ofstream(tree / "ucx" / "libuct_ib.so.0") << "x";
  EXPECT_EQ(slowerBecause("tcp/eth0", "1.13.1", tree / "ucx", tree / "devices"), "");
  fs::remove_all(tree);
}

TEST(UcxLanes, everyInterfaceOfThisMachineIsAPath) {
  const auto paths = pathsOfThisMachine();
  EXPECT_TRUE(std::any_of(paths.begin(), paths.end(),
                          [](const auto& path) { return path.name == "tcp/lo"; }));
}

}  // namespace hmc::ucx
