#include "bench/report/png.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "bench/against/program.h"

namespace hmc::bench {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::StartsWith;

constexpr const char* kDrawing =
    R"(<svg xmlns="http://www.w3.org/2000/svg" width="8" height="8"><rect width="4" height="4"/></svg>)";

// A machine whose programs are those that a test installs.
class Png : public testing::Test {
 protected:
  Png() : usualPath_(std::getenv("PATH")) {
    std::string name = testing::TempDir() + "png_XXXXXX";
    folder_ = mkdtemp(name.data());
    setenv("PATH", folder_.c_str(), 1);
    setenv("TMPDIR", folder_.c_str(), 1);
  }
  ~Png() override {
    setenv("PATH", usualPath_.c_str(), 1);
    unsetenv("TMPDIR");
    fs::remove_all(folder_);
  }

  void install(const std::string& name, const std::string& body) {
    std::ofstream(folder_ / name) << "#!/bin/sh\nPATH=" << usualPath_ << "\n" << body << "\n";
    chmod((folder_ / name).c_str(), 0755);
  }
  std::string out() const { return (folder_ / "out.png").string(); }
  std::string drawn() const {
    std::ifstream file(out(), std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  const std::string usualPath_;
  fs::path folder_;
};

TEST_F(Png, isWhatItsNameSays) {
  EXPECT_TRUE(isPng("a/out.png"));
  EXPECT_FALSE(isPng("out.svg"));
  EXPECT_FALSE(isPng("png"));
}

TEST_F(Png, namesThePackagesWhereNoProgramCanDrawIt) {
  EXPECT_THAT(canWritePng().message(), HasSubstr("apt install librsvg2-bin"));
  EXPECT_EQ(Code::unsupported, writePng(kDrawing, out()).code());
  EXPECT_FALSE(fs::exists(out()));
}

TEST_F(Png, isDrawnByTheFirstProgramThatIsThereAndLeavesNothingElse) {
  install("convert", "cp \"$1\" \"$2\"");
  ASSERT_TRUE(writePng(kDrawing, out()).ok());
  EXPECT_EQ(kDrawing, drawn());
  install("rsvg-convert", "echo better >\"$3\"");
  ASSERT_TRUE(writePng(kDrawing, out()).ok());
  EXPECT_EQ("better\n", drawn());
  EXPECT_EQ(3, std::distance(fs::directory_iterator(folder_), {})) << "two programs, one picture";
}

TEST_F(Png, passesOnWhatTheProgramComplainsAbout) {
  install("cairosvg", "echo no paint left >&2; exit 3");
  const Status status = writePng(kDrawing, out());
  EXPECT_THAT(status.message(), HasSubstr("no paint left"));
  EXPECT_THAT(status.message(), HasSubstr(out()));
}

TEST_F(Png, isOneWithAProgramOfThisMachine) {
  setenv("PATH", usualPath_.c_str(), 1);
  if (!canWritePng().ok()) GTEST_SKIP() << canWritePng().message();
  const Status status = writePng(kDrawing, out());
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_THAT(drawn(), StartsWith("\x89PNG"));
}

}  // namespace
}  // namespace hmc::bench
