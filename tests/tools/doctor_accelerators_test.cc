#include <cerrno>

#include "fake_host.h"

namespace hmc::tool {
namespace {

using testing::HasSubstr;

class AcceleratorHost : public FakeHost {
 protected:
  void addPci(const std::string& vendor, const std::string& pciClass) {
    const std::string folder =
        "sys/bus/pci/devices/0000:" + std::to_string(10 + cards_++) + ":00.0/";
    write(folder + "vendor", vendor + "\n");
    write(folder + "class", pciClass + "\n");
  }
  static MemoryReport missing(DeviceKind kind, const std::string& why) { return {kind, 0, why}; }
  AcceleratorSigns signsOf(DeviceKind kind) {
    for (const auto& signs : findAccelerators(root())) {
      if (signs.kind == kind) return signs;
    }
    ADD_FAILURE() << "the doctor does not know " << deviceKindName(kind);
    return {};
  }
  // The one line that there is about a kind.
  Finding check(const AcceleratorSigns& signs, const std::string& why) {
    auto findings = checkAccelerators({signs}, {missing(signs.kind, why)});
    EXPECT_EQ(findings.size(), 1U);
    return findings.empty() ? Finding{} : findings[0];
  }
  Finding check(DeviceKind kind, const std::string& why) { return check(signsOf(kind), why); }

  int cards_ = 0;
};

constexpr DeviceKind kAll[] = {DeviceKind::cuda, DeviceKind::hip, DeviceKind::cnrt, DeviceKind::acl,
                               DeviceKind::musa};

TEST_F(AcceleratorHost, withoutASignHasNoLine) {
  std::vector<MemoryReport> reports;
  for (DeviceKind kind : kAll) reports.push_back(missing(kind, "there is no library"));
  write("dev/null", "");
  EXPECT_EQ(findAccelerators(root()).size(), kDeviceKindCount - 1) << "a kind has no row";
  EXPECT_TRUE(checkAccelerators(findAccelerators(root()), reports).empty());
}

TEST_F(AcceleratorHost, isNotTakenInByOtherCardsOfTheVendor) {
  addPci("0x19e5", "0x020000");  // Huawei's network card
  addPci("0x10de", "0x040300");  // the sound of a GPU
  addPci("0x1d94", "0x060000");  // a bridge of Hygon's processor
  for (DeviceKind kind : kAll) EXPECT_FALSE(signsOf(kind).onPci) << deviceKindName(kind);
}

TEST_F(AcceleratorHost, recognisesTheCardsOfEveryVendor) {
  const std::tuple<DeviceKind, const char*, const char*> cards[] = {
      {DeviceKind::cuda, "0x10de", "0x030200"}, {DeviceKind::hip, "0x1002", "0x038000"},
      {DeviceKind::hip, "0x1d94", "0x0b4000"},  {DeviceKind::cnrt, "0xcabc", "0x120000"},
      {DeviceKind::acl, "0x19e5", "0x120000"},  {DeviceKind::musa, "0x1ed5", "0x030000"}};
  for (const auto& [kind, vendor, pciClass] : cards) {
    std::filesystem::remove_all(root() + "/sys");
    addPci(vendor, pciClass);
    EXPECT_TRUE(signsOf(kind).onPci) << vendor;
  }
}

TEST_F(AcceleratorHost, thatWorksHasALineThatSaysWhat) {
  auto findings = checkAccelerators(findAccelerators(root()), {{DeviceKind::cuda, 2, "CUDA 13.0"}});
  ASSERT_EQ(findings.size(), 1U);
  expectOk(findings[0]);
  EXPECT_EQ(findings[0].what, "cuda");
  EXPECT_EQ(findings[0].detail, "2 devices, CUDA 13.0");
}

TEST_F(AcceleratorHost, withACardAndNoNodesNeedsTheDriver) {
  addPci("0x10de", "0x030200");
  Finding finding = check(DeviceKind::cuda, "no libcuda.so.1");
  expectFix(finding, Level::warn, "nvidia-open");
  EXPECT_THAT(finding.detail, HasSubstr("there is no /dev/nvidiactl"));
  EXPECT_THAT(finding.detail, HasSubstr("no libcuda.so.1"));
  addPci("0x1002", "0x038000");
  expectFix(check(DeviceKind::hip, "no library"), Level::warn, "modprobe amdgpu");
}

// The machine's PCI devices are to be seen in a container, its nodes are not.
TEST_F(AcceleratorHost, thatIsAContainerNeedsItsFlags) {
  write(".dockerenv", "");
  addPci("0x10de", "0x030200");
  addPci("0x1002", "0x038000");
  addPci("0x19e5", "0x120000");
  addPci("0xcabc", "0x120000");
  addPci("0x1ed5", "0x030000");
  const std::pair<DeviceKind, const char*> flags[] = {
      {DeviceKind::cuda, "--gpus all"},
      {DeviceKind::hip, "--device=/dev/kfd"},
      {DeviceKind::acl, "--device=/dev/davinci_manager"},
      {DeviceKind::cnrt, "--device=/dev/cambricon_ctl"},
      {DeviceKind::musa, "--runtime=mthreads"}};
  for (const auto& [kind, flag] : flags) expectFix(check(kind, "no library"), Level::warn, flag);
}

TEST_F(AcceleratorHost, withALibraryAloneIsProbablyAContainer) {
  AcceleratorSigns signs = signsOf(DeviceKind::cuda);
  signs.library = true;
  Finding finding = check(signs, "cuInit: no CUDA-capable device is detected");
  expectFix(finding, Level::warn, "--gpus all");
  EXPECT_THAT(finding.detail, HasSubstr("the library is installed, but there is no /dev/nvidia"));
  EXPECT_THAT(finding.detail, HasSubstr("no CUDA-capable device is detected"));
}

TEST_F(AcceleratorHost, withNodesAndNoLibraryNeedsTheLibrary) {
  write("dev/nvidiactl", "");
  write("dev/kfd", "");
  write("dev/davinci0", "");
  write("dev/cambricon_dev0", "");
  write("dev/mtgpu.0", "");
  const std::pair<DeviceKind, const char*> fixes[] = {{DeviceKind::cuda, "libcuda1"},
                                                      {DeviceKind::hip, "install ROCm"},
                                                      {DeviceKind::acl, "set_env.sh"},
                                                      {DeviceKind::cnrt, "install CNToolkit"},
                                                      {DeviceKind::musa, "install the MUSA SDK"}};
  for (const auto& [kind, fix] : fixes) {
    Finding finding = check(kind, "there is no such library");
    expectFix(finding, Level::warn, fix);
    EXPECT_THAT(finding.detail, HasSubstr("but no library: there is no such library"));
  }
}

TEST_F(AcceleratorHost, whoseNodesAreForOthersNeedsTheirGroup) {
  AcceleratorSigns signs = signsOf(DeviceKind::hip);
  signs.nodes = {{"hip", "/dev/kfd", EACCES}};
  Finding finding = check(signs, "no device");
  expectFix(finding, Level::warn, "usermod -aG render,video");
  EXPECT_THAT(finding.detail, HasSubstr("/dev/kfd cannot be opened: Permission denied"));
  signs.kind = DeviceKind::acl;
  expectFix(check(signs, "no device"), Level::warn, "HwHiAiUser");
}

// The device cgroup of a container says EPERM.
TEST_F(AcceleratorHost, whoseNodesDoNotWorkNeedsTheContainersFlagOrTheDriver) {
  AcceleratorSigns signs = signsOf(DeviceKind::hip);
  signs.nodes = {{"hip", "/dev/kfd", EPERM}};
  signs.inContainer = true;
  expectFix(check(signs, "no device"), Level::warn, "--device=/dev/kfd");
  signs.inContainer = false;
  signs.nodes[0].error = ENXIO;
  expectFix(check(signs, "no device"), Level::warn, "modprobe amdgpu");
}

TEST_F(AcceleratorHost, whoseDevicesAreHiddenNamesTheVariable) {
  write("dev/nvidiactl", "");
  setenv("CUDA_VISIBLE_DEVICES", "-1", 1);
  AcceleratorSigns signs = signsOf(DeviceKind::cuda);
  unsetenv("CUDA_VISIBLE_DEVICES");
  signs.library = true;
  Finding finding = check(signs, "cuInit: no device");
  expectFix(finding, Level::warn, "unset CUDA_VISIBLE_DEVICES");
  EXPECT_THAT(finding.detail, HasSubstr("CUDA_VISIBLE_DEVICES=-1 hides the devices"));
}

TEST_F(AcceleratorHost, whoseDriverFailsHearsItsOwnWords) {
  write("dev/nvidiactl", "");
  AcceleratorSigns signs = signsOf(DeviceKind::cuda);
  signs.library = true;
  signs.hiddenBy = "";
  Finding finding = check(signs, "cuInit: driver/library version mismatch (803); install that");
  expectFix(finding, Level::warn, "reboot");
  EXPECT_EQ(finding.detail, "cuInit: driver/library version mismatch (803)");
}

}  // namespace
}  // namespace hmc::tool
