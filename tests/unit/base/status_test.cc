#include "hmc/status.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <set>
#include <thread>

#include "base/error.h"

namespace hmc {

namespace {

Result<int> half(int number) {
  if (number % 2 != 0) return error(Code::invalidArgument, "{} is odd", number);
  return number / 2;
}

Status quarter(int number, int& out) {
  HMC_ASSIGN(int first, half(number));
  HMC_ASSIGN(out, half(first));
  HMC_TRY(Status());
  return Status();
}

}  // namespace

TEST(Status, isOkByDefault) {
  Status status;
  EXPECT_TRUE(status.ok());
  EXPECT_EQ(status.code(), Code::ok);
  EXPECT_EQ(status.message(), "");
  EXPECT_EQ(status.toString(), "ok");
}

TEST(Status, carriesCodeAndSentence) {
  Status status = error(Code::outOfRange, "put of {} bytes", 7);
  EXPECT_FALSE(status.ok());
  EXPECT_EQ(status.code(), Code::outOfRange);
  EXPECT_EQ(status.toString(), "out of range: put of 7 bytes");
}

TEST(Status, withinPutsThePlaceInFront) {
  Status status = error(Code::notFound, "no such thing").within("looking");
  EXPECT_EQ(status.code(), Code::notFound);
  EXPECT_EQ(status.message(), "looking: no such thing");
  EXPECT_TRUE(Status().within("looking").ok());
}

TEST(Status, everyCodeHasItsOwnName) {
  std::set<std::string> names;
  for (int code = 0; code <= static_cast<int>(Code::failed); ++code) {
    names.insert(codeName(static_cast<Code>(code)));
  }
  EXPECT_EQ(names.size(), static_cast<size_t>(Code::failed) + 1);
  EXPECT_EQ(names.count("unknown"), 0u);
}

TEST(Status, theDocumentedValuesHaveTheDocumentedNames) {
  EXPECT_STREQ(status_to_string(status_t::SUCCESS), "Succeeded");
  EXPECT_STREQ(status_to_string(status_t::ERROR), "Error");
  EXPECT_STREQ(status_to_string(status_t::UNSUPPORT), "Unsupported");
  EXPECT_STREQ(status_to_string(status_t::INVALID_CONFIG), "Invalid Config");
  EXPECT_STREQ(status_to_string(status_t::NOT_FOUND), "Not Found");
  EXPECT_STREQ(status_to_string(status_t::TIMEOUT), "Timeout");
  EXPECT_STREQ(status_to_string(static_cast<status_t>(99)), "Unknown Status");
}

TEST(Status, errnoBecomesACodeAndASentence) {
  EXPECT_EQ(errnoStatus("bind", EADDRINUSE).code(), Code::alreadyExists);
  EXPECT_EQ(errnoStatus("open", EACCES).code(), Code::permissionDenied);
  EXPECT_EQ(errnoStatus("dial", ECONNREFUSED).code(), Code::disconnected);
  EXPECT_EQ(errnoStatus("open", EMFILE).code(), Code::exhausted);
  EXPECT_EQ(errnoStatus("read", EIO).code(), Code::failed);
  EXPECT_EQ(errnoStatus("dial", ECONNREFUSED).message(),
            "dial: Connection refused (" + std::to_string(ECONNREFUSED) + ")");
  errno = EACCES;
  EXPECT_EQ(errnoStatus("open").code(), Code::permissionDenied);
}

TEST(Result, leavesTheFunctionWithTheFirstFailure) {
  int out = 0;
  EXPECT_TRUE(quarter(12, out).ok());
  EXPECT_EQ(out, 3);
  EXPECT_EQ(quarter(6, out).message(), "3 is odd");
  EXPECT_EQ(quarter(7, out).message(), "7 is odd");
}

TEST(Result, madeFromAnOkStatusIsAFailure) {
  Result<int> result{Status()};
  EXPECT_FALSE(result.ok());
  EXPECT_EQ(result.status().code(), Code::failed);
}

TEST(LastError, belongsToOneThread) {
  setLastStatus(Status(Code::failed, "mine"));
  std::jthread([] {
    EXPECT_EQ(lastError(), "");
    setLastStatus(Status(Code::outOfRange, "theirs"));
  }).join();
  EXPECT_EQ(lastError(), "mine");
  setLastStatus(Status());
}

}  // namespace hmc
