#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "doctor/checks.h"

namespace hmc::tool {

// A make-believe machine: files under a root of its own, and programs once one is installed.
class FakeHost : public testing::Test {
 protected:
  FakeHost() {
    std::string pattern = testing::TempDir() + "hostXXXXXX";
    root_ = mkdtemp(pattern.data());
    const char* path = std::getenv("PATH");
    usualPath_ = path ? path : "/usr/bin:/bin";
  }
  ~FakeHost() override {
    setenv("PATH", usualPath_.c_str(), 1);
    std::filesystem::remove_all(root_);
  }
  void write(const std::string& path, const std::string& text) {
    std::filesystem::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }
  // From now on PATH has nothing but the programs that were installed.
  void install(const std::string& name, const std::string& script) {
    usePrograms();
    write(name, "#!/bin/sh\nPATH=" + usualPath_ + "\n" + script + "\n");
    std::filesystem::permissions(root_ / name, std::filesystem::perms::owner_all);
  }
  void usePrograms() { setenv("PATH", root_.c_str(), 1); }
  std::string root() const { return root_.string(); }

 private:
  std::filesystem::path root_;
  std::string usualPath_;
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
