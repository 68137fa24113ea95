#include "base/lease.h"

#include <gtest/gtest.h>

#include "base/futex.h"

namespace hmc {

namespace {

bool expiresWithin(Lease& lease, Deadline deadline) {
  std::atomic<uint32_t> never{0};
  while (!lease.expired()) {
    if (deadline.passed()) return false;
    futexWait(never, 0, std::chrono::milliseconds(1));
  }
  return true;
}

}  // namespace

TEST(Lease, isValidAtFirst) {
  Lease lease(std::chrono::hours(1));
  EXPECT_FALSE(lease.expired());
  EXPECT_TRUE(lease.hear());
  EXPECT_EQ(lease.length(), std::chrono::hours(1));
}

TEST(Lease, expiresWhenNothingIsHeard) {
  Lease lease(std::chrono::milliseconds(5));
  EXPECT_TRUE(expiresWithin(lease, std::chrono::seconds(30)));
}

TEST(Lease, staysExpiredWhateverIsHeardLater) {
  Lease lease(std::chrono::milliseconds(5));
  ASSERT_TRUE(expiresWithin(lease, std::chrono::seconds(30)));
  EXPECT_FALSE(lease.hear());
  EXPECT_TRUE(lease.expired());
}

TEST(Lease, aHeartbeatThatComesTooLateDoesNotReviveIt) {
  Lease lease(std::chrono::milliseconds(0));
  std::atomic<uint32_t> never{0};
  // Nobody has asked it meanwhile whether it had expired.
  Deadline later(std::chrono::milliseconds(2));
  while (!later.passed()) futexWait(never, 0, later);
  EXPECT_FALSE(lease.hear());
}

// Who writes by itself counts from what the other side has certainly heard.
TEST(Lease, isHeldFromTheHeartbeatThatWasAnsweredAndNotFromWhatIsHeard) {
  Lease lease(std::chrono::hours(1));
  EXPECT_TRUE(lease.held());
  lease.confirm(Lease::Clock::now() - std::chrono::hours(2));
  EXPECT_TRUE(lease.hear());
  EXPECT_FALSE(lease.held());
  EXPECT_FALSE(lease.expired());
  lease.confirm(Lease::Clock::now());
  EXPECT_TRUE(lease.held());
}

// Not from what is heard, which may have been said before a stop of this process.
TEST(Lease, letsApplyFromTheAnsweredHeartbeatOnAndOnlyWhileItIsHeard) {
  Lease lease(std::chrono::hours(1));
  EXPECT_TRUE(lease.mayApply());
  lease.confirm(Lease::Clock::now() - std::chrono::hours(2));
  EXPECT_TRUE(lease.hear());
  EXPECT_FALSE(lease.mayApply());
  lease.confirm(Lease::Clock::now());
  EXPECT_TRUE(lease.mayApply());
  lease.revoke();
  EXPECT_FALSE(lease.mayApply());
}

TEST(Lease, endsWhenRevoked) {
  Lease lease(std::chrono::hours(1));
  lease.revoke();
  EXPECT_TRUE(lease.expired());
  EXPECT_FALSE(lease.hear());
}

}  // namespace hmc
