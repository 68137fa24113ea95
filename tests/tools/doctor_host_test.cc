#include "doctor/host_checks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <nlohmann/json.hpp>

namespace hmc::tool {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

// A make-believe machine: files under a root of its own.
class FakeHost : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "hostXXXXXX";
    root_ = mkdtemp(pattern.data());
  }
  void TearDown() override { fs::remove_all(root_); }
  void write(const std::string& path, const std::string& text) {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }
  std::string root() const { return root_.string(); }

 private:
  fs::path root_;
};

const Status kForbidden(Code::failed, "the kernel forbids it");
constexpr const char* kScope = "proc/sys/kernel/yama/ptrace_scope";

// A check that finds something wrong says how to right it.
void expectFix(const Finding& finding, Level level, const std::string& fix) {
  EXPECT_EQ(finding.level, level) << finding.detail;
  EXPECT_THAT(finding.fix, HasSubstr(fix));
  EXPECT_FALSE(finding.what.empty());
  EXPECT_FALSE(finding.detail.empty());
}
void expectOk(const Finding& finding) {
  EXPECT_EQ(finding.level, Level::ok) << finding.detail;
  EXPECT_EQ(finding.fix, "");
  EXPECT_FALSE(finding.detail.empty());
}

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

TEST_F(FakeHost, aMissingShmIsAWarning) {
  expectFix(checkShm(root()), Level::warn, "mount -t tmpfs");
  write("dev/shm/file", "x");
  Finding there = checkShm(root());
  EXPECT_THAT(there.detail, HasSubstr("MiB free"));
}

TEST_F(FakeHost, lockedMemoryHasALimit) {
  expectOk(checkMemlock({Limit::kUnlimited, Limit::kUnlimited}));
  expectOk(checkMemlock({uint64_t{64} << 20, uint64_t{64} << 20}));
  expectFix(checkMemlock({65536, Limit::kUnlimited}), Level::warn, "ulimit -l unlimited");
  expectFix(checkMemlock({65536, 65536}), Level::warn, "limits.d");
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
}

TEST(Host, thisOneIsLookedAtAndEveryComplaintHasAFix) {
  auto findings = checkHost();
  EXPECT_GE(findings.size(), 8U);
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
  auto json = nlohmann::json::parse(toJson({warning, failure}));
  EXPECT_EQ(json["healthy"], false);
  EXPECT_EQ(json["findings"].size(), 2U);
  EXPECT_EQ(json["findings"][0]["level"], "warn");
  EXPECT_EQ(json["findings"][1]["fix"], "do that");
}

}  // namespace
}  // namespace hmc::tool
