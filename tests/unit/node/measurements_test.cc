#include "node/measurements.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "unit/node/node_pair.h"

namespace hmc {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

Measurement put(const std::string& transport, size_t size, double ns) {
  return {transport, DeviceKind::cpu, "put", size, ns};
}

// A folder of its own for each test.
class MeasurementsFile : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "measurementsXXXXXX";
    folder_ = mkdtemp(pattern.data());
    file_ = folder_ / "times";
  }
  void TearDown() override {
    unsetenv("HMC_MEASUREMENTS");
    fs::remove_all(folder_);
  }
  fs::path folder_;
  fs::path file_;
};

TEST(Measurements, aLineThatIsNoneIsQuotedWithItsNumber) {
  const std::string good = "version 1\nipc/ring cuda get 32 12.5\ntcp cpu put 8 14000\n";
  EXPECT_EQ(must(Measurements::parse(good)).text(), good);
  for (const std::string bad :
       {"", "tcp cpu put eight 1", "tcp cpu put -8 1", "tcp cpu put 16 -1", "tcp cpu put 16 nan",
        "tcp abacus put 16 1", "tcp cpu put 16 1 more", "tcp cpu put 16 1 away more",
        "tcp cpu put 16", "tcp cpu put 6"}) {
    Status status = Measurements::parse(good + bad + "\n").status();
    EXPECT_EQ(status.code(), Code::invalidArgument) << bad;
    EXPECT_THAT(status.message(), HasSubstr("line 4, \"" + bad + "\": expected transport"));
  }
}

TEST(Measurements, aFileOfAnotherVersionIsRefused) {
  for (const char* text : {"version 2\ntcp cpu put 8 1\n", "tcp cpu put 8 1\n", ""})
    EXPECT_EQ(Measurements::parse(text).status().code(), Code::invalidArgument) << text;
}

TEST(Measurements, betweenTwoSizesIsInterpolatedAndBeyondThemIsNot) {
  Measurements measurements;
  measurements.merge({put("tcp", 1000, 400), put("tcp", 100, 100), put("ipc", 100, 7)});
  auto at = [&](size_t size) { return *measurements.find("tcp", DeviceKind::cpu, "put", size); };
  EXPECT_DOUBLE_EQ(at(100), 100);
  EXPECT_DOUBLE_EQ(at(550), 250);
  EXPECT_DOUBLE_EQ(at(1000), 400);
  EXPECT_DOUBLE_EQ(at(1), 100);
  EXPECT_DOUBLE_EQ(at(3000), 1200);
  EXPECT_FALSE(measurements.find("tcp", DeviceKind::cuda, "put", 100));
  EXPECT_FALSE(measurements.find("tcp", DeviceKind::cpu, "get", 100));
  EXPECT_FALSE(measurements.find("ucx", DeviceKind::cpu, "put", 100));
}

TEST(Measurements, thoseOfAnotherHostAreApart) {
  Measurements measurements;
  Measurement far = put("tcp", 8, 30000);
  far.away = true;
  measurements.merge({put("tcp", 8, 7000), far, put("tcp", 64, 7100)});
  EXPECT_EQ(measurements.text(),
            "version 1\ntcp cpu put 8 7000\ntcp cpu put 64 7100\ntcp cpu put 8 30000 away\n");
  EXPECT_EQ(must(Measurements::parse(measurements.text())).text(), measurements.text());
  EXPECT_DOUBLE_EQ(*measurements.find("tcp", DeviceKind::cpu, "put", 8), 7000);
  EXPECT_DOUBLE_EQ(*measurements.find("tcp", DeviceKind::cpu, "put", 8, /*away=*/true), 30000);
  EXPECT_DOUBLE_EQ(*measurements.find("tcp", DeviceKind::cpu, "put", 80, /*away=*/true), 300000);
}

TEST_F(MeasurementsFile, savingMergesWithWhatIsThere) {
  ASSERT_TRUE(saveMeasurements(file_, {put("ipc", 8, 20), put("tcp", 8, 14000)}).ok());
  ASSERT_TRUE(saveMeasurements(file_, {put("tcp", 8, 13000), put("tcp", 16, 13500)}).ok());
  EXPECT_EQ(must(Measurements::read(file_)).text(),
            "version 1\nipc cpu put 8 20\ntcp cpu put 8 13000\ntcp cpu put 16 13500\n");
  auto files = std::distance(fs::directory_iterator(folder_), {});
  EXPECT_EQ(files, 1) << "a file beside it was left";
}

TEST_F(MeasurementsFile, whatCouldNotBeReadBackIsRefused) {
  for (const auto& wrong : {put("ipc (ring)", 8, 1), put("", 8, 1), put("tcp", 8, 0)}) {
    EXPECT_EQ(saveMeasurements(file_, {wrong}).code(), Code::invalidArgument) << wrong.transport;
  }
  EXPECT_FALSE(fs::exists(file_));
}

TEST_F(MeasurementsFile, aFileOfSomethingElseIsLeftAlone) {
  std::ofstream(file_) << "dear diary\n";
  Status status = saveMeasurements(file_, {put("tcp", 8, 1)});
  EXPECT_EQ(status.code(), Code::invalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("this one with \"dear diary\""));
  std::string text;
  std::getline(std::ifstream(file_), text);
  EXPECT_EQ(text, "dear diary");
}

TEST_F(MeasurementsFile, aPlaceThatCannotBeWrittenIsAnError) {
  Status status = saveMeasurements(folder_ / "nowhere" / "times", {put("tcp", 8, 1)});
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(status.message(), HasSubstr("nowhere"));
}

TEST_F(MeasurementsFile, onlyANamedFileCountsAndItHasToBeThere) {
  unsetenv("HMC_MEASUREMENTS");
  EXPECT_EQ(must(Measurements::fromEnvironment()).text(), "version 1\n");
  setenv("HMC_MEASUREMENTS", file_.c_str(), 1);
  const Status missing = Measurements::fromEnvironment().status();
  EXPECT_THAT(missing.message(), HasSubstr("HMC_MEASUREMENTS: open " + file_.string()));
  EXPECT_THAT(missing.message(), HasSubstr("hmc bench --all-paths --save"));
  ASSERT_TRUE(saveMeasurements(file_, {put("tcp", 8, 1)}).ok());
  EXPECT_TRUE(must(Measurements::fromEnvironment()).find("tcp", DeviceKind::cpu, "put", 8));
}

}  // namespace
}  // namespace hmc
