#include "node/figures.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace hmc {
namespace {

namespace fs = std::filesystem;

MeasuredFigure put(const std::string& transport, size_t size, double ns) {
  return {transport, DeviceKind::cpu, "put", size, ns};
}

// A folder of its own for each test, and HMC_FIGURES pointing into it.
class FiguresFile : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "figuresXXXXXX";
    folder_ = mkdtemp(pattern.data());
    path_ = folder_ / "deeper" / "figures";
    setenv("HMC_FIGURES", path_.c_str(), 1);
  }
  void TearDown() override {
    unsetenv("HMC_FIGURES");
    fs::remove_all(folder_);
  }
  fs::path folder_;
  fs::path path_;
};

TEST(Figures, linesThatDoNotParseAreIgnored) {
  Figures figures = Figures::parse(
      "version 1\n"
      "tcp cpu put 8 14000\n"
      "\n"
      "tcp cpu put eight 1\n"
      "tcp cpu put -8 1\n"
      "tcp cpu put 16 -1\n"
      "tcp cpu put 16 nan\n"
      "tcp abacus put 16 1\n"
      "tcp cpu put 16 1 more\n"
      "tcp cpu put 16 1 away more\n"
      "tcp cpu put 16\n"
      "ipc/ring cuda get 32 12.5\n"
      "tcp cpu put 6");
  ASSERT_EQ(figures.all().size(), 2U);
  EXPECT_EQ(figures.text(), "version 1\nipc/ring cuda get 32 12.5\ntcp cpu put 8 14000\n");
}

TEST(Figures, aFileOfAnotherVersionCountsAsEmpty) {
  EXPECT_TRUE(Figures::parse("version 2\ntcp cpu put 8 1\n").all().empty());
  EXPECT_TRUE(Figures::parse("tcp cpu put 8 1\n").all().empty());
  EXPECT_TRUE(Figures::parse("").all().empty());
}

TEST(Figures, betweenTwoSizesIsInterpolatedAndBeyondThemIsNot) {
  Figures figures;
  figures.merge({put("tcp", 1000, 400), put("tcp", 100, 100), put("ipc", 100, 7)});
  auto at = [&](size_t size) { return *figures.find("tcp", DeviceKind::cpu, "put", size); };
  EXPECT_DOUBLE_EQ(at(100), 100);
  EXPECT_DOUBLE_EQ(at(550), 250);
  EXPECT_DOUBLE_EQ(at(1000), 400);
  EXPECT_DOUBLE_EQ(at(1), 100);
  EXPECT_DOUBLE_EQ(at(3000), 1200);
  EXPECT_FALSE(figures.find("tcp", DeviceKind::cuda, "put", 100));
  EXPECT_FALSE(figures.find("tcp", DeviceKind::cpu, "get", 100));
  EXPECT_FALSE(figures.find("ucx", DeviceKind::cpu, "put", 100));
}

TEST(Figures, thoseOfAnotherHostAreApart) {
  Figures figures;
  MeasuredFigure far = put("tcp", 8, 30000);
  far.away = true;
  figures.merge({put("tcp", 8, 7000), far, put("tcp", 64, 7100)});
  EXPECT_EQ(figures.text(),
            "version 1\ntcp cpu put 8 7000\ntcp cpu put 64 7100\ntcp cpu put 8 30000 away\n");
  EXPECT_EQ(Figures::parse(figures.text()).text(), figures.text());
  EXPECT_DOUBLE_EQ(*figures.find("tcp", DeviceKind::cpu, "put", 8), 7000);
  EXPECT_DOUBLE_EQ(*figures.find("tcp", DeviceKind::cpu, "put", 8, /*away=*/true), 30000);
  EXPECT_DOUBLE_EQ(*figures.find("tcp", DeviceKind::cpu, "put", 80, /*away=*/true), 300000);
}

TEST_F(FiguresFile, aMissingFileIsNormal) {
  EXPECT_TRUE(loadFigures().empty());
}

TEST_F(FiguresFile, savingMakesTheFolderAndMergesWithWhatIsThere) {
  ASSERT_TRUE(saveFigures({put("ipc", 8, 20), put("tcp", 8, 14000)}).ok());
  ASSERT_TRUE(saveFigures({put("tcp", 8, 13000), put("tcp", 16, 13500)}).ok());
  Figures now = Figures::read(path_);
  EXPECT_EQ(now.text(), "version 1\nipc cpu put 8 20\ntcp cpu put 8 13000\ntcp cpu put 16 13500\n");
  auto files = std::distance(fs::directory_iterator(path_.parent_path()), {});
  EXPECT_EQ(files, 1) << "a file beside it was left";
}

TEST_F(FiguresFile, whatCouldNotBeReadBackIsRefused) {
  for (const auto& wrong : {put("ipc (ring)", 8, 1), put("", 8, 1), put("tcp", 8, 0)}) {
    EXPECT_EQ(saveFigures({wrong}).code(), Code::invalidArgument) << wrong.transport;
  }
  EXPECT_FALSE(fs::exists(path_));
}

TEST_F(FiguresFile, aPlaceThatCannotBeWrittenIsAnError) {
  std::ofstream(folder_ / "file") << "x";
  setenv("HMC_FIGURES", (folder_ / "file" / "figures").c_str(), 1);
  Status status = saveFigures({put("tcp", 8, 1)});
  EXPECT_FALSE(status.ok());
  EXPECT_NE(status.message().find("file"), std::string::npos) << status.message();
}

TEST_F(FiguresFile, thePlaceFollowsTheEnvironment) {
  EXPECT_EQ(figuresPath(), path_);
  unsetenv("HMC_FIGURES");
  setenv("XDG_CACHE_HOME", "/cache", 1);
  setenv("HOME", "/home/me", 1);
  EXPECT_EQ(figuresPath(), "/cache/hmc/figures");
  unsetenv("XDG_CACHE_HOME");
  EXPECT_EQ(figuresPath(), "/home/me/.cache/hmc/figures");
  unsetenv("HOME");
  EXPECT_EQ(figuresPath(), "");
  EXPECT_EQ(saveFigures({put("tcp", 8, 1)}).code(), Code::notFound);
}

}  // namespace
}  // namespace hmc
