#include "doctor/checks.h"

#include <nlohmann/json.hpp>

#include "fake_host.h"

namespace hmc::tool {
namespace {

using testing::HasSubstr;

const Status kForbidden(Code::failed, "the kernel forbids it");
constexpr const char* kScope = "proc/sys/kernel/yama/ptrace_scope";

TEST_F(FakeHost, processVmIsJudgedByTryingAndItsFixByYama) {
  write(kScope, "1\n");
  expectOk(checkProcessVm(root(), Status()));
  expectFix(checkProcessVm(root(), kForbidden), Level::warn, "kernel.yama.ptrace_scope=0");
  EXPECT_THAT(checkProcessVm(root(), kForbidden).detail, HasSubstr("ptrace_scope is 1"));
  write(kScope, "3\n");
  expectFix(checkProcessVm(root(), kForbidden), Level::warn, "reboot");
  write(kScope, "0\n");
  expectFix(checkProcessVm(root(), kForbidden), Level::warn, "SYS_PTRACE");
}

TEST_F(FakeHost, withoutYamaAContainerIsBlamed) {
  expectFix(checkProcessVm(root(), kForbidden), Level::warn, "SYS_PTRACE");
}

TEST_F(FakeHost, withoutMemfdNothingWorks) {
  expectOk(checkMemfd(Status()));
  expectFix(checkMemfd(kForbidden), Level::fail, "uname");
}

TEST_F(FakeHost, withoutUserfaultfdAContainerIsToldWhatToAdd) {
  expectOk(checkUserfaultfd(Status()));
  expectFix(checkUserfaultfd(kForbidden), Level::warn, "--device /dev/userfaultfd");
}

TEST_F(FakeHost, aMissingShmIsAWarning) {
  expectFix(checkShm(root()), Level::warn, "mount -t tmpfs");
  write("dev/shm/file", "x");
  Finding there = checkShm(root());
  EXPECT_THAT(there.detail, HasSubstr("MiB free"));
}

constexpr uint64_t kGiB = uint64_t{1} << 30;

TEST_F(FakeHost, lockedMemoryHasALimitThatOnlyRdmaMinds) {
  expectOk(checkMemlock(root(), {65536, 65536}));
  write("sys/class/infiniband/mlx5_0/node_guid", "1");
  expectOk(checkMemlock(root(), {Limit::kUnlimited, Limit::kUnlimited}));
  expectOk(checkMemlock(root(), {kGiB, kGiB}));
  expectFix(checkMemlock(root(), {65536, Limit::kUnlimited}), Level::warn, "ulimit -l unlimited");
  expectFix(checkMemlock(root(), {65536, 65536}), Level::warn, "limits.d");
  write("proc/self/status", "Name: x\nCapEff:\t0000000000003fff\n");
  expectFix(checkMemlock(root(), {65536, 65536}), Level::warn, "limits.d");
  write("proc/self/status", "Name: x\nCapEff:\t000001ffffffffff\n");
  expectOk(checkMemlock(root(), {65536, 65536}));
}

TEST_F(FakeHost, hugePagesAreOptional) {
  expectFix(checkHugePages(root()), Level::warn, "vm.nr_hugepages=");
  write("proc/sys/vm/nr_hugepages", "0\n");
  expectFix(checkHugePages(root()), Level::warn, "vm.nr_hugepages=");
  write("proc/sys/vm/nr_hugepages", "64\n");
  expectOk(checkHugePages(root()));
}

TEST_F(FakeHost, descriptorsAreCountedInPeers) {
  expectOk(checkDescriptors({1024, 4096}));
  expectOk(checkDescriptors({Limit::kUnlimited, Limit::kUnlimited}));
  expectFix(checkDescriptors({256, 4096}), Level::warn, "ulimit -n 4096");
  expectFix(checkDescriptors({256, Limit::kUnlimited}), Level::warn, "ulimit -n 65536");
  expectFix(checkDescriptors({256, 256}), Level::warn, "limits.d");
  expectFix(checkDescriptors({16, 4096}), Level::fail, "ulimit -n 4096");
}

TEST_F(FakeHost, aNarrowPortRangeIsAWarning) {
  const std::string file = "proc/sys/net/ipv4/ip_local_port_range";
  expectFix(checkPorts(root()), Level::warn, "ip_local_port_range");
  write(file, "32768\t60999\n");
  expectOk(checkPorts(root()));
  write(file, "50000\t50100\n");
  expectFix(checkPorts(root()), Level::warn, "sysctl -w net.ipv4.ip_local_port_range");
  EXPECT_THAT(checkPorts(root()).detail, HasSubstr("101 ports"));
  write(file, "50100\t50000\n");
  expectFix(checkPorts(root()), Level::warn, "ip_local_port_range");
}

TEST(Settings, oneThatMakesNoSenseIsAFailureThatNamesIt) {
  std::vector<SettingReport> settings{{"HMC_A", "", "1", true, ""}, {"HMC_B", "", "2", false, ""}};
  expectOk(checkSettings(settings));
  settings[1].problem = "HMC_B=\"2\": expected more";
  expectFix(checkSettings(settings), Level::fail, "unset HMC_B");
  settings[0].problem = "HMC_A=\"1\": expected less";
  expectFix(checkSettings(settings), Level::fail, "unset HMC_A HMC_B");
  EXPECT_EQ(checkSettings(settings).detail,
            "HMC_A=\"1\": expected less; HMC_B=\"2\": expected more");
}

TEST(Host, thisOneIsLookedAtAndEveryComplaintHasAFix) {
  auto findings = checkHost();
  EXPECT_GE(findings.size(), 9U);
  for (const auto& finding : findings) {
    EXPECT_EQ(finding.fix.empty(), finding.level == Level::ok) << finding.what;
  }
  EXPECT_TRUE(tryMemfd().ok()) << tryMemfd().message();
}

TEST(Findings, onlyAFailureIsUnhealthy) {
  Finding good{Level::ok, "one", "fine", ""};
  Finding warning{Level::warn, "two", "so so", "do this"};
  Finding failure{Level::fail, "three", "a \"quoted\" \xff byte", "do that"};
  EXPECT_TRUE(healthy({}));
  EXPECT_TRUE(healthy({good, warning}));
  EXPECT_FALSE(healthy({good, failure, warning}));
  EXPECT_THAT(toText(warning), HasSubstr("fix: do this"));
  EXPECT_THAT(toText(good), testing::Not(HasSubstr("fix")));
  auto report = nlohmann::json::parse(toJson({warning, failure}));
  EXPECT_EQ(report["healthy"], false);
  EXPECT_EQ(report["findings"].size(), 2U);
  EXPECT_EQ(report["findings"][0]["level"], "warn");
  EXPECT_EQ(report["findings"][1]["fix"], "do that");
}

TEST(Findings, noFixSaysSudoWhereThereIsNoneOrToRoot) {
  const Finding general{Level::warn, "limits", "low", "echo 1 | sudo tee file; sudo reboot"};
  EXPECT_EQ(forUser(general, Privilege::sudo).fix, general.fix);
  EXPECT_EQ(forUser(general, Privilege::root).fix, "echo 1 | tee file; reboot");
  EXPECT_EQ(forUser(general, Privilege::none).fix, "as root: echo 1 | tee file; reboot");
  const Finding ours{Level::warn, "settings", "bad", "unset HMC_A"};
  EXPECT_EQ(forUser(ours, Privilege::none).fix, ours.fix);
}

TEST(Puts, onlyADefaultTransportThatFailsIsAFailure) {
  const Status broken(Code::failed, "it broke");
  EXPECT_EQ(judgePut("tcp", std::string("tcp (2 streams)"), true).level, Level::ok);
  expectFix(judgePut("tcp", broken, true), Level::fail, "HMC_LOG=debug");
  const Finding shy = judgePut("ucx", broken, false);
  expectFix(shy, Level::warn, "HMC_LOG=debug");
  EXPECT_THAT(shy.detail, HasSubstr("it broke; it serves only where a program names it"));
}

}  // namespace
}  // namespace hmc::tool
