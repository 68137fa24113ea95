#include "base/log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace hmc {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

class Log : public testing::Test {
 protected:
  ~Log() override {
    setLogger(nullptr);
    setLogLevel(LogLevel::warn);
  }
};

TEST_F(Log, linesGoToTheLoggerFromTheLevelOn) {
  std::vector<std::pair<LogLevel, std::string>> lines;
  setLogger([&](LogLevel level, const std::string& line) { lines.emplace_back(level, line); });
  setLogLevel(LogLevel::info);
  logDebug("{} is dropped", 1);
  logInfo("{} is said", 2);
  setLogLevel(LogLevel::warn);
  logInfo("{} is dropped", 3);
  logWarn("{} is said", 4);
  EXPECT_THAT(lines,
              ElementsAre(Pair(LogLevel::info, "2 is said"), Pair(LogLevel::warn, "4 is said")));
}

TEST_F(Log, withoutALoggerTheyGoToStandardError) {
  int heard = 0;
  setLogger([&](LogLevel, const std::string&) { ++heard; });
  setLogger(nullptr);
  testing::internal::CaptureStderr();
  logWarn("for people");
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("warning: for people"));
  EXPECT_EQ(heard, 0);
}

TEST_F(Log, aLineOnWhichTheLoggerThrowsIsNotLost) {
  setLogger([](LogLevel, const std::string&) { throw std::runtime_error("the disk is full"); });
  testing::internal::CaptureStderr();
  logWarn("still said");
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("still said"));
}

TEST_F(Log, theLoggerCanBeReplacedWhileOthersLog) {
  constexpr int kLines = 2000;
  std::atomic<int> heard{0};
  setLogger([&](LogLevel, const std::string&) { ++heard; });
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 2; ++i) {
      threads.emplace_back([] {
        for (int k = 0; k < kLines; ++k) logWarn("a line");
      });
    }
    for (int k = 0; k < kLines; ++k) setLogger([&](LogLevel, const std::string&) { ++heard; });
  }
  EXPECT_EQ(heard, 2 * kLines);
}

}  // namespace
}  // namespace hmc
