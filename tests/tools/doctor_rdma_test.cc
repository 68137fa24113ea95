#include "doctor/checks.h"

#include <cerrno>

#include "fake_host.h"

namespace hmc::tool {
namespace {

using testing::HasSubstr;

class RdmaHost : public FakeHost {
 protected:
  void addDevice(const std::string& device, const std::string& file) {
    write("sys/class/infiniband/" + device + "/node_guid", "1\n");
    write("sys/class/infiniband_verbs/abi_version", "6\n");
    write("sys/class/infiniband_verbs/" + file + "/ibdev", device + "\n");
  }
  std::vector<Finding> check(const RdmaReport& report) {
    return checkRdma(root(), tryDeviceFiles(root()), report);
  }
  // What a library says that sees one good port.
  static RdmaReport good() {
    RdmaReport report;
    report.library = "/usr/lib/libibverbs.so.1";
    report.ports = {{"mlx5_0", 1, true, "RoCE v2, GID 3 (10.0.0.1), MTU 4096", "", ""}};
    return report;
  }
};

TEST_F(RdmaHost, needsNoDeviceAndThenNothingElse) {
  RdmaReport broken;
  broken.problem = "libibverbs.so.1 is missing";
  auto findings = check(broken);
  ASSERT_EQ(findings.size(), 1U);
  expectOk(findings[0]);
  EXPECT_THAT(findings[0].detail, HasSubstr("not needed"));
}

TEST_F(RdmaHost, withAGoodPortHasALineForTheLibraryAndOneForThePort) {
  addDevice("mlx5_0", "uverbs0");
  write("dev/infiniband/uverbs0", "");
  auto findings = check(good());
  ASSERT_EQ(findings.size(), 2U);
  expectOk(findings[0]);
  expectOk(findings[1]);
  EXPECT_EQ(findings[1].what, "mlx5_0:1");
  EXPECT_THAT(findings[1].detail, HasSubstr("MTU 4096"));
}

TEST_F(RdmaHost, missesTheLibrary) {
  addDevice("mlx5_0", "uverbs0");
  write("dev/infiniband/uverbs0", "");
  RdmaReport report;
  report.problem = "libibverbs.so.1 is missing";
  expectFix(check(report).back(), Level::warn, "apt install libibverbs1");
  report.library = "/usr/lib/libibverbs.so.1";
  expectFix(check(report).back(), Level::warn, "ibv_devinfo");
  report.fix = "apt install something";
  expectFix(check(report).back(), Level::warn, "apt install something");
}

TEST_F(RdmaHost, missesTheDeviceFiles) {
  write("sys/class/infiniband/mlx5_0/node_guid", "1\n");
  expectFix(check(good())[0], Level::warn, "modprobe ib_uverbs");
  addDevice("mlx5_0", "uverbs0");
  auto findings = check(good());
  EXPECT_EQ(findings[0].what, "mlx5_0");
  expectFix(findings[0], Level::warn, "--device /dev/infiniband");
}

TEST_F(RdmaHost, isNotPermittedToOpenADeviceFile) {
  addDevice("mlx5_0", "uverbs0");
  auto findings = checkRdma(root(), {{"mlx5_0", "/dev/infiniband/uverbs0", EACCES}}, good());
  expectFix(findings[0], Level::warn, "chmod a+rw /dev/infiniband/uverbs0");
  EXPECT_THAT(findings[0].detail, HasSubstr("Permission denied"));
}

TEST_F(RdmaHost, tellsWhatIsWrongWithAPortAlsoWhenItCanBeUsed) {
  addDevice("mlx5_0", "uverbs0");
  RdmaReport report = good();
  report.ports = {{"mlx5_0", 1, false, "", "the port is not active", "ip link set eth2 up"},
                  {"mlx5_0", 2, true, "GID 0 (fe80::1)", "link-local GIDs only", "ip addr add"},
                  {"mlx5_1", 1, false, "", "", ""}};
  auto findings = check(report);
  ASSERT_EQ(findings.size(), 5U);  // the file and the library before them
  expectFix(findings[2], Level::warn, "ip link set eth2 up");
  expectFix(findings[3], Level::warn, "ip addr add");
  EXPECT_EQ(findings[3].detail, "link-local GIDs only (GID 0 (fe80::1))");
  expectFix(findings[4], Level::warn, "ibv_devinfo -v -d mlx5_1");
}

TEST_F(RdmaHost, saysHowDeviceMemoryIsReached) {
  addDevice("mlx5_0", "uverbs0");
  write("dev/infiniband/uverbs0", "");
  RdmaReport report = good();
  report.memory = {{{DeviceKind::cuda, 1}, "dma-buf"}};
  Finding last = check(report).back();
  expectOk(last);
  EXPECT_EQ(last.what, "RDMA and cuda:1");
  EXPECT_EQ(last.detail, "dma-buf");
}

TEST_F(RdmaHost, saysWhatKeepsNicsFromDeviceMemory) {
  addDevice("mlx5_0", "uverbs0");
  write("dev/infiniband/uverbs0", "");
  RdmaReport report = good();
  report.memory = {{{DeviceKind::cuda, 0}, "staged through the host: no dma-buf"}};
  expectFix(check(report).back(), Level::warn, "modprobe nvidia-peermem");
  report.memory = {{{DeviceKind::musa, 0}, "staged through the host: no dma-buf"}};
  expectOk(check(report).back());
}

}  // namespace
}  // namespace hmc::tool
