// `hmc info` and `hmc doctor` where the vendors' libraries are installed: the fakes of them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "hmc/device.h"
#include "tools/hmc_command.h"

namespace hmc::tool {
namespace {

using testing::HasSubstr;

const std::string kInstalled =
    std::string("LD_LIBRARY_PATH=") + HMC_FAKE_LIBCUDA + ":" + HMC_FAKE_VENDORS;
const std::string kVisible =
    " -u CUDA_VISIBLE_DEVICES -u HIP_VISIBLE_DEVICES -u MUSA_VISIBLE_DEVICES"
    " -u ASCEND_RT_VISIBLE_DEVICES -u MLU_VISIBLE_DEVICES ";

nlohmann::json jsonOf(const std::string& command, const std::string& environment) {
  const Outcome outcome = hmcCommand(command + " --json", kVisible + environment);
  EXPECT_EQ(outcome.status, 0) << outcome.output;
  return nlohmann::json::parse(outcome.output);
}

// The doctor's line about a kind; null when there is none.
nlohmann::json lineAbout(const nlohmann::json& report, const std::string& kind) {
  for (const auto& finding : report["findings"]) {
    if (finding["what"] == kind) return finding;
  }
  return nullptr;
}

TEST(AcceleratorsCommand, infoListsWhatEveryKindHas) {
  const auto memory = jsonOf("info", kInstalled)["memory"];
  ASSERT_EQ(memory.size(), size_t{kDeviceKindCount});
  for (const auto& one : memory) {
    EXPECT_EQ(one["devices"], one["kind"] == "cpu" ? 1 : 2) << one;
  }
}

TEST(AcceleratorsCommand, infoSaysInTheDriversWordsWhyThereIsNone) {
  const auto memory = jsonOf("info", kInstalled + " HMC_FAKE_DEVICES=0")["memory"];
  for (const auto& one : memory) {
    if (one["kind"] == "cpu") continue;
    EXPECT_EQ(one["devices"], 0) << one;
    EXPECT_THAT(std::string(one["detail"]),
                testing::AnyOf(HasSubstr("device"), HasSubstr("Count")));
  }
}

TEST(AcceleratorsCommand, doctorHasALineForEveryKindThatIsInstalled) {
  const auto works = jsonOf("doctor", kInstalled);
  const auto idle = jsonOf("doctor", kInstalled + " HMC_FAKE_DEVICES=0");
  for (DeviceKind kind : kDeviceKinds) {
    if (kind == DeviceKind::cpu) continue;
    const auto good = lineAbout(works, deviceKindName(kind));
    ASSERT_FALSE(good.is_null()) << deviceKindName(kind);
    EXPECT_EQ(good["level"], "ok") << good;
    EXPECT_THAT(std::string(good["detail"]), HasSubstr("2 devices"));
    const auto bad = lineAbout(idle, deviceKindName(kind));
    ASSERT_FALSE(bad.is_null()) << deviceKindName(kind);
    EXPECT_EQ(bad["level"], "warn") << bad;
    EXPECT_NE(bad["fix"], "") << bad;
  }
}

}  // namespace
}  // namespace hmc::tool
