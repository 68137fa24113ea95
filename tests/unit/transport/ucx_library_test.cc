#include "transport/ucx/library.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

#include "transport/ucx/ucx.h"

// This program never loads UCX: what is found is only looked at.
namespace hmc::ucx {
namespace {

namespace fs = std::filesystem;

class UcxLibrary : public testing::Test {
 protected:
  void SetUp() override {
    char path[] = "/tmp/hmc_ucx_XXXXXX";
    ASSERT_NE(mkdtemp(path), nullptr);
    tree_ = path;
    search_.root = tree_ / "root";
    search_.system = {tree_ / "first", tree_ / "second"};
    search_.prefixes = {tree_ / "venv", tree_ / "usr"};
  }
  void TearDown() override { fs::remove_all(tree_); }

  std::string add(const fs::path& folder) {
    const fs::path file = tree_ / folder / kLibraryName;
    fs::create_directories(file.parent_path());
    std::ofstream(file) << "not a library";
    return file;
  }
  void expectFound(const std::string& path) {
    auto found = findLibrary(search_);
    ASSERT_TRUE(found.ok()) << found.status().toString();
    EXPECT_EQ(*found, path);
  }

  fs::path tree_;
  Search search_;
};

TEST_F(UcxLibrary, everyPlaceComesBeforeTheFollowingOnes) {
  expectFound(add("usr/lib/python3.11/dist-packages/libucx/lib"));
  expectFound(add("venv/lib/python3.9/site-packages/libucx/lib"));
  expectFound(add("second"));
  expectFound(add("first"));
  expectFound(add("root/lib"));
}

TEST_F(UcxLibrary, noneIsASentenceWithAllPlacesAndTheFix) {
  auto found = findLibrary(search_);
  ASSERT_EQ(found.status().code(), Code::unsupported);
  for (const std::string& part :
       {search_.root + "/lib", search_.system[1], search_.prefixes[0], std::string("UCX_ROOT")}) {
    EXPECT_NE(found.status().message().find(part), std::string::npos) << part;
  }
}

TEST_F(UcxLibrary, aFolderOfThatNameIsNoLibrary) {
  fs::create_directories(tree_ / "first" / kLibraryName);
  EXPECT_FALSE(findLibrary(search_).ok());
}

TEST_F(UcxLibrary, theEnvironmentSaysWhereToLookFirst) {
  setenv("UCX_ROOT", "/somewhere", 1);
  setenv("LD_LIBRARY_PATH", "/here::/there", 1);
  setenv("VIRTUAL_ENV", "/venv", 1);
  const Search search = Search::ofThisProcess();
  EXPECT_EQ(search.root, "/somewhere");
  ASSERT_GE(search.system.size(), 3u);
  EXPECT_EQ(search.system[0], "/usr/local/ucx/lib");
  EXPECT_EQ(search.system[1], "/here");
  EXPECT_EQ(search.system[2], "/there");
  EXPECT_EQ(search.prefixes[0], "/venv");
}

TEST_F(UcxLibrary, makingATransportLoadsNothing) {
  unsetenv("UCX_ROOT");
  unsetenv("LD_LIBRARY_PATH");
  auto transport = create();
  ASSERT_TRUE(transport.ok()) << transport.status().toString();
  EXPECT_TRUE((*transport)->facts().onDemand);
  EXPECT_FALSE((*transport)->progress(std::chrono::milliseconds(1)));
  EXPECT_EQ(loadedLibrary(), "");
}

TEST_F(UcxLibrary, isNotNeededToRefuseMemoryOfADevice) {
  auto transport = create({.library = "/nowhere/libucp.so.0"});
  ASSERT_TRUE(transport.ok()) << transport.status().toString();
  char byte = 0;
  const Region device{&byte, 1, {DeviceKind::cuda, 1}};
  const Status status = (*transport)->registerRegion(device, Access::readWrite).status();
  EXPECT_EQ(status.code(), Code::unsupported);
  EXPECT_NE(status.message().find("host memory only"), std::string::npos) << status.toString();
}

TEST_F(UcxLibrary, whatCannotBeLoadedIsAStatusOfTheCallThatNeedsIt) {
  auto transport = create({.library = add("first")});
  ASSERT_TRUE(transport.ok()) << transport.status().toString();
  auto link = (*transport)->openLink({});
  ASSERT_EQ(link.status().code(), Code::unsupported);
  EXPECT_NE(link.status().message().find(search_.system[0]), std::string::npos)
      << link.status().toString();
  char byte = 0;
  EXPECT_EQ((*transport)->registerRegion({&byte, 1, Device{}}, Access::readWrite).status().code(),
            Code::unsupported);
}

}  // namespace
}  // namespace hmc::ucx
