#include "transport/ucx/library.h"

#include <gtest/gtest.h>
#include <signal.h>

namespace hmc::ucx {

namespace {

std::string libraryHere() {
  auto found = findLibrary(Search::ofThisProcess());
  EXPECT_TRUE(found.ok()) << found.status().toString();
  return found.ok() ? *found : "";
}

void expectRefused(const std::string& path, const std::string& part) {
  auto api = Api::load(path);
  ASSERT_EQ(api.status().code(), Code::unsupported) << api.status().toString();
  EXPECT_NE(api.status().message().find(path), std::string::npos) << api.status().toString();
  EXPECT_NE(api.status().message().find(part), std::string::npos) << api.status().toString();
}

void onSignal(int) {}

}  // namespace

TEST(UcxApi, aMissingFileIsNamed) {
  expectRefused("/nowhere/libucp.so.0", "cannot load");
}

TEST(UcxApi, anotherMajorVersionIsRefused) {
  expectRefused(HMC_UCP_FROM_THE_FUTURE, "UCX 2.0.7");
}

TEST(UcxApi, aMissingFunctionIsNamed) {
  expectRefused(HMC_UCP_WITHOUT_FUNCTIONS, "ucp_get_version_string");
}

// The first test here that loads the real one: its constructors run now.
TEST(UcxApi, signalHandlersStayAsTheyWere) {
  struct sigaction mine {};
  mine.sa_handler = onSignal;
  ASSERT_EQ(sigaction(SIGHUP, &mine, nullptr), 0);
  struct sigaction before {};
  sigaction(SIGBUS, nullptr, &before);
  ASSERT_EQ(loadedLibrary(), "");
  auto api = Api::load(libraryHere());
  ASSERT_TRUE(api.ok()) << api.status().toString();
  struct sigaction now {};
  sigaction(SIGHUP, nullptr, &now);
  EXPECT_EQ(now.sa_handler, &onSignal);
  sigaction(SIGBUS, nullptr, &now);
  EXPECT_EQ(now.sa_handler, before.sa_handler);
}

TEST(UcxApi, theOneInTheProcessIsFoundAndNamesItsVersion) {
  auto api = Api::load(libraryHere());
  ASSERT_TRUE(api.ok()) << api.status().toString();
  EXPECT_EQ((*api)->version, (*api)->ucp_get_version_string());
  EXPECT_NE(loadedLibrary(), "");
  auto again = Api::load(loadedLibrary());
  ASSERT_TRUE(again.ok()) << again.status().toString();
  EXPECT_EQ((*again)->ucp_am_send_nbx, (*api)->ucp_am_send_nbx);
}

}  // namespace hmc::ucx
