#include "bench/raw_socket.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cerrno>

namespace hmc::bench::raw_socket {
namespace {

TEST(RawSocket, echoesBlockingAndSpinning) {
  for (bool spin : {false, true}) {
    for (size_t bytes : {size_t{1}, size_t{8}, size_t{1} << 20}) {
      auto took = echoRoundTripNs(bytes, 5, spin);
      ASSERT_TRUE(took.ok()) << took.status().toString();
      EXPECT_GT(*took, 0) << bytes << " bytes, spinning: " << spin;
    }
  }
}

TEST(RawSocket, hasOrderedPercentiles) {
  auto times = roundTrips({.bytes = 64, .answer = 1, .rounds = 50});
  ASSERT_TRUE(times.ok()) << times.status().toString();
  EXPECT_LE(times->p50, times->p99);
  EXPECT_LE(times->p99, times->p999);
}

TEST(RawSocket, countsBytesAndNotBits) {
  const size_t bytes = size_t{8} << 20;
  auto speed = bandwidth(bytes, 3);
  ASSERT_TRUE(speed.ok()) << speed.status().toString();
  EXPECT_GT(*speed, 0);
  EXPECT_LT(*speed, 1000) << "no loopback moves a terabyte a second";
}

TEST(RawSocket, leavesNoProcessBehind) {
  ASSERT_TRUE(echoRoundTripNs(8, 1, false).ok());
  EXPECT_EQ(-1, waitpid(-1, nullptr, WNOHANG));
  EXPECT_EQ(ECHILD, errno);
}

TEST(RawSocket, endsAtItsDeadline) {
  for (bool spin : {false, true}) {
    // No time at all, and more rounds than anyone could wait for.
    auto times = roundTrips({.bytes = size_t{16} << 20,
                             .answer = 1,
                             .rounds = 1000000,
                             .spin = spin,
                             .deadline = Deadline::now()});
    ASSERT_FALSE(times.ok());
    EXPECT_THAT(times.status().message(), testing::HasSubstr("exchange 16777216 bytes"));
  }
}

TEST(RawSocket, refusesAnEmptyExchange) {
  EXPECT_EQ(Code::invalidArgument, roundTrips({.bytes = 0}).status().code());
  EXPECT_EQ(Code::invalidArgument, roundTrips({.answer = 0}).status().code());
  EXPECT_EQ(Code::invalidArgument, roundTrips({.rounds = 0}).status().code());
}

}  // namespace
}  // namespace hmc::bench::raw_socket
