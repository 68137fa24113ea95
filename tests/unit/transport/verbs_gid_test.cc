#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

#include "transport/verbs/nic.h"

namespace hmc::verbs {
namespace {

namespace fs = std::filesystem;

// A /sys with one port of one device.
class FakeSysfs {
 public:
  FakeSysfs() {
    char name[] = "/tmp/hmc-sysfs-XXXXXX";
    root = mkdtemp(name);
    fs::create_directories(port() + "/gids");
    fs::create_directories(port() + "/gid_attrs/types");
    write("link_layer", "Ethernet");
  }
  ~FakeSysfs() { fs::remove_all(root); }

  void write(const std::string& file, const std::string& text) const {
    std::ofstream(port() + "/" + file) << text << "\n";
  }
  void add(int index, const std::string& gid, const std::string& type) const {
    write("gids/" + std::to_string(index), gid);
    write("gid_attrs/types/" + std::to_string(index), type);
  }
  std::vector<Gid> gids() const { return readGids(root, "nic0", 1); }
  std::string port() const { return root + "/class/infiniband/nic0/ports/1"; }

  std::string root;
};

constexpr const char* kNone = "0000:0000:0000:0000:0000:0000:0000:0000";
constexpr const char* kLinkLocal = "fe80:0000:0000:0000:0202:c9ff:fe00:0001";
constexpr const char* kGlobal = "2001:0db8:0000:0000:0000:0000:0000:0001";
constexpr const char* kFour = "0000:0000:0000:0000:0000:ffff:0a08:0001";

TEST(VerbsGid, ofRoce2WithAnIpv4AddressIsPreferred) {
  FakeSysfs sysfs;
  sysfs.add(0, kLinkLocal, "IB/RoCE v1");
  sysfs.add(1, kLinkLocal, "RoCE v2");
  sysfs.add(2, kFour, "IB/RoCE v1");
  sysfs.add(3, kGlobal, "RoCE v2");
  sysfs.add(10, kFour, "RoCE v2");
  sysfs.add(11, kNone, "RoCE v2");
  ASSERT_EQ(sysfs.gids().size(), 5u) << "one that is not set is none";
  auto gid = chooseGid(sysfs.gids(), std::nullopt, "nic0:1");
  ASSERT_TRUE(gid.ok());
  EXPECT_EQ(gid->index, 10);
  EXPECT_EQ(gid->toString(), "10.8.0.1");
  EXPECT_EQ(gid->kind, Gid::Kind::roce2);
}

TEST(VerbsGid, isTheBestOfWhatThereIs) {
  FakeSysfs sysfs;
  sysfs.add(0, kLinkLocal, "IB/RoCE v1");
  EXPECT_EQ(chooseGid(sysfs.gids(), std::nullopt, "nic0:1")->kind, Gid::Kind::roce1);
  sysfs.add(1, kLinkLocal, "RoCE v2");
  auto gid = chooseGid(sysfs.gids(), std::nullopt, "nic0:1");
  EXPECT_EQ(gid->index, 1);
  EXPECT_TRUE(gid->isLinkLocal());
  sysfs.add(7, kGlobal, "RoCE v2");
  gid = chooseGid(sysfs.gids(), std::nullopt, "nic0:1");
  EXPECT_EQ(gid->index, 7);
  EXPECT_EQ(gid->toString(), "2001:db8::1");
  EXPECT_FALSE(gid->isLinkLocal());
}

TEST(VerbsGid, ofInfinibandIsTheFirst) {
  FakeSysfs sysfs;
  sysfs.write("link_layer", "InfiniBand");
  sysfs.add(0, kLinkLocal, "IB/RoCE v1");
  sysfs.add(1, kGlobal, "IB/RoCE v1");
  auto gid = chooseGid(sysfs.gids(), std::nullopt, "nic0:1");
  EXPECT_EQ(gid->index, 0);
  EXPECT_EQ(gid->kind, Gid::Kind::infiniband);
}

TEST(VerbsGid, canBeChosenByTheUserAndAWrongChoiceNamesTheRightOnes) {
  FakeSysfs sysfs;
  sysfs.add(0, kLinkLocal, "RoCE v2");
  sysfs.add(3, kFour, "RoCE v2");
  EXPECT_EQ(chooseGid(sysfs.gids(), 0, "nic0:1")->index, 0);
  Status wrong = chooseGid(sysfs.gids(), 1, "nic0:1").status();
  EXPECT_EQ(wrong.code(), Code::unsupported);
  EXPECT_EQ(wrong.message(),
            "nic0:1 has no GID 1: HMC_RDMA_GID_INDEX may be 0 (RoCE v2 fe80::202:c9ff:fe00:1), 3 "
            "(RoCE v2 10.8.0.1)");
}

TEST(VerbsGid, isMissedWithTheFix) {
  FakeSysfs sysfs;
  Status none = chooseGid(sysfs.gids(), std::nullopt, "nic0:1").status();
  EXPECT_EQ(none.message(), "nic0:1 has no GID: give it an address");
}

TEST(VerbsDevices, thatAreMissingAreExplained) {
  FakeSysfs sysfs;
  EXPECT_EQ(explainNoDevice("/nowhere", "/dev").message(), "this host has no RDMA device");
  Status noFiles = explainNoDevice(sysfs.root, "/nowhere");
  EXPECT_NE(noFiles.message().find("nic0"), std::string::npos) << noFiles.message();
  EXPECT_NE(noFiles.message().find("ib_uverbs"), std::string::npos) << noFiles.message();
  fs::create_directories(sysfs.root + "/dev/infiniband");
  Status noDriver = explainNoDevice(sysfs.root, sysfs.root + "/dev");
  EXPECT_NE(noDriver.message().find("ibverbs-providers"), std::string::npos) << noDriver.message();
}

TEST(VerbsSettings, areReadFromTheEnvironment) {
  setenv("HMC_RDMA_DEVICES", "mlx5_0,mlx5_1:2", 1);
  setenv("HMC_RDMA_GID_INDEX", "3", 1);
  setenv("HMC_RDMA_MTU", "1024", 1);
  auto settings = PortSettings::fromEnvironment();
  ASSERT_TRUE(settings.ok());
  EXPECT_EQ(settings->ports, (std::vector<std::string>{"mlx5_0", "mlx5_1:2"}));
  EXPECT_EQ(settings->gidIndex, 3);
  EXPECT_EQ(settings->mtu, 1024);
  setenv("HMC_RDMA_MTU", "1k", 1);
  EXPECT_EQ(PortSettings::fromEnvironment().status().message(),
            "HMC_RDMA_MTU=\"1k\": expected a number");
  for (const char* name : {"HMC_RDMA_DEVICES", "HMC_RDMA_GID_INDEX", "HMC_RDMA_MTU"})
    unsetenv(name);
  EXPECT_TRUE(PortSettings::fromEnvironment()->ports.empty());
}

}  // namespace
}  // namespace hmc::verbs
