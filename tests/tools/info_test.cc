#include "info/info.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include <nlohmann/json.hpp>

#include "explain/explain.h"
#include "hmc/version.h"
#include "peer_options.h"

namespace hmc::tool {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(Info, listsEverySettingWithWhereItCameFrom) {
  setenv("HMC_LEASE_MS", "60000", 1);
  setenv("HMC_SECRET", "sesame", 1);
  setenv("HMC_TIMEOUT_MS", "soon", 1);
  const Info info = collectInfo();
  const std::string text = toText(info);
  const auto report = nlohmann::json::parse(toJson(info));
  unsetenv("HMC_LEASE_MS");
  unsetenv("HMC_SECRET");
  unsetenv("HMC_TIMEOUT_MS");
  EXPECT_GE(info.settings.size(), 10U);
  for (const auto& setting : info.settings) {
    EXPECT_THAT(text, HasSubstr(setting.variable));
    EXPECT_THAT(text, HasSubstr(setting.meaning));
    const bool ours = setting.variable == "HMC_LEASE_MS" || setting.variable == "HMC_SECRET" ||
                      setting.variable == "HMC_TIMEOUT_MS";
    if (ours) {
      EXPECT_TRUE(setting.fromEnvironment) << setting.variable;
    }
  }
  EXPECT_THAT(text, testing::ContainsRegex("HMC_LEASE_MS +60000 +environment"));
  EXPECT_THAT(text, testing::ContainsRegex("HMC_RECV_TIMEOUT_MS +600000 +default"));
  EXPECT_THAT(text, HasSubstr("WRONG: HMC_TIMEOUT_MS=\"soon\""));
  EXPECT_THAT(text, Not(HasSubstr("sesame")));
  EXPECT_THAT(report.dump(), Not(HasSubstr("sesame")));
  EXPECT_EQ(report["settings"].size(), info.settings.size());
}

TEST(Info, knowsTheBuildTheMemoryAndTheTransports) {
  const Info info = collectInfo();
  EXPECT_EQ(info.build.version, kVersion);
  EXPECT_THAT(info.build.compiler, testing::AnyOf(HasSubstr("gcc"), HasSubstr("clang")));
  EXPECT_EQ(info.build.library.front(), '/');
  EXPECT_EQ(info.installed.rfind("build folder /", 0), 0U) << info.installed;
  EXPECT_FALSE(info.build.type.empty());
  ASSERT_EQ(info.memory.size(), 6U);
  EXPECT_EQ(info.memory[0].devices, 1);
  for (const auto& one : info.memory) EXPECT_FALSE(one.detail.empty());
  ASSERT_EQ(info.transports.size(), 4U);
  EXPECT_TRUE(info.transports[0].usable);
  const std::string text = toText(info);
  for (const char* word : {"ipc", "tcp", "verbs", "ucx", "cuda", "host memory"})
    EXPECT_THAT(text, HasSubstr(word));
}

TEST(Info, saysWhoIsLetIn) {
  setenv("HMC_COOKIE", "none", 1);
  EXPECT_THAT(toText(collectInfo()), HasSubstr("every user of this host"));
  EXPECT_TRUE(nlohmann::json::parse(toJson(collectInfo()))["security"]["open"]);
  setenv("HMC_SECRET", "sesame", 1);
  EXPECT_THAT(toText(collectInfo()), HasSubstr("who knows HMC_SECRET"));
  unsetenv("HMC_SECRET");
  setenv("HMC_COOKIE", "/nonexistent/cookie", 1);
  EXPECT_THAT(toText(collectInfo()), HasSubstr("WRONG: make the cookie /nonexistent/cookie"));
  unsetenv("HMC_COOKIE");
  EXPECT_THAT(toText(collectInfo()), HasSubstr("processes of this user (cookie "));
  EXPECT_THAT(toText(collectInfo()), HasSubstr("nobody: set HMC_SECRET"));
}

TEST(Info, saysWhyThereAreNoTransports) {
  setenv("HMC_TRANSPORTS", "pigeon", 1);
  const Info info = collectInfo();
  unsetenv("HMC_TRANSPORTS");
  EXPECT_TRUE(info.transports.empty());
  EXPECT_THAT(toText(info), HasSubstr("HMC_TRANSPORTS=\"pigeon\": expected some of"));
}

TEST(Explain, showsATimeOnlyWhereThereIsOne) {
  std::vector<PathReport> paths{{"ipc", true, true, "near", "mapped", 430.0, {}, {}},
                                {"tcp", true, false, "far", "", 16600.0, 14250.0, {}},
                                {"ucx", false, false, "missing", "", {}, {}, {}}};
  std::string text = toText(paths);
  EXPECT_THAT(text, testing::ContainsRegex("ipc +used +430 ns +- +near"));
  EXPECT_THAT(text, testing::ContainsRegex("tcp +could be used +16.6 us +14.2 us +far"));
  EXPECT_THAT(text, testing::ContainsRegex("ucx +not usable +- +- +missing"));
  EXPECT_THAT(text, HasSubstr("measured: from the file"));
  EXPECT_THAT(text, Not(HasSubstr("extrapolated")));
  paths[1].extrapolatedNs.swap(paths[1].measuredNs);
  text = toText(paths);
  EXPECT_THAT(text, testing::ContainsRegex("tcp +could be used +16.6 us +~ 14.2 us +far"));
  EXPECT_THAT(text, HasSubstr("~: extrapolated"));
  EXPECT_THAT(text, Not(HasSubstr("measured: from")));
}

TEST(PeerOptions, devicesAreReadAsPeopleWriteThem) {
  Device device;
  EXPECT_TRUE(parseDevice("cpu", device).ok());
  EXPECT_EQ(device, (Device{DeviceKind::cpu, 0}));
  EXPECT_TRUE(parseDevice("cuda", device).ok());
  EXPECT_EQ(device, (Device{DeviceKind::cuda, 0}));
  EXPECT_TRUE(parseDevice("cuda:3", device).ok());
  EXPECT_EQ(device, (Device{DeviceKind::cuda, 3}));
  for (const char* wrong : {"", "gpu", "cuda:", "cuda:x", "cuda:-1", "cuda:1x"})
    EXPECT_FALSE(parseDevice(wrong, device).ok()) << wrong;
}

TEST(PeerOptions, theHostOfAnAddressIsWithoutItsDecoration) {
  EXPECT_EQ(hostOf("tcp://10.0.0.3:5001"), "10.0.0.3");
  EXPECT_EQ(hostOf("node7:5001"), "node7");
  EXPECT_EQ(hostOf("tcp://[::1]:5001"), "::1");
  EXPECT_EQ(hostOf("tcp://:5001"), "127.0.0.1");
}

}  // namespace
}  // namespace hmc::tool
