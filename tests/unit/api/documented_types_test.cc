#include "api/documented_types.h"

#include <gtest/gtest.h>

#include <thread>

namespace hmc {
namespace {

TEST(StatusMap, keepsWhatCallersTellApart) {
  EXPECT_EQ(report(Status()), status_t::SUCCESS);
  EXPECT_EQ(report(Status(Code::unsupported, "x")), status_t::UNSUPPORT);
  EXPECT_EQ(report(Status(Code::notFound, "x")), status_t::NOT_FOUND);
  EXPECT_EQ(report(Status(Code::deadlineExceeded, "x")), status_t::TIMEOUT);
  for (Code code :
       {Code::invalidArgument, Code::outOfRange, Code::alreadyExists, Code::permissionDenied,
        Code::exhausted, Code::cancelled, Code::disconnected, Code::failed}) {
    EXPECT_EQ(report(Status(code, "x")), status_t::ERROR) << codeName(code);
  }
}

TEST(StatusMap, takesTheValueThatTheCallerChose) {
  EXPECT_EQ(report(Status(Code::invalidArgument, "no such ConnType"), status_t::INVALID_CONFIG),
            status_t::INVALID_CONFIG);
  EXPECT_EQ(lastError(), "no such ConnType");
  EXPECT_EQ(lastStatus().code(), Code::invalidArgument);
  EXPECT_EQ(report(Status(), status_t::INVALID_CONFIG), status_t::SUCCESS);
}

TEST(StatusMap, leavesTheLastSentenceOfThisThreadOnly) {
  report(Status(Code::failed, "the first"));
  report(Status());
  EXPECT_EQ(lastError(), "the first");
  std::thread([] { EXPECT_EQ(lastError(), ""); }).join();
  report(Status(Code::failed, "the second"));
  EXPECT_EQ(lastError(), "the second");
}

}  // namespace
}  // namespace hmc
