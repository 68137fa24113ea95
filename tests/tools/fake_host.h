#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "doctor/finding.h"

namespace hmc::tool {

// A make-believe machine: files under a root of its own.
class FakeHost : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "hostXXXXXX";
    root_ = mkdtemp(pattern.data());
  }
  void TearDown() override { std::filesystem::remove_all(root_); }
  void write(const std::string& path, const std::string& text) {
    std::filesystem::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }
  std::string root() const { return root_.string(); }

 private:
  std::filesystem::path root_;
};

// A check that finds something wrong says how to right it.
inline void expectFix(const Finding& finding, Level level, const std::string& fix) {
  EXPECT_EQ(finding.level, level) << finding.detail;
  EXPECT_THAT(finding.fix, testing::HasSubstr(fix));
  EXPECT_FALSE(finding.what.empty());
  EXPECT_FALSE(finding.detail.empty());
}
inline void expectOk(const Finding& finding) {
  EXPECT_EQ(finding.level, Level::ok) << finding.detail;
  EXPECT_EQ(finding.fix, "");
  EXPECT_FALSE(finding.detail.empty());
}

}  // namespace hmc::tool
