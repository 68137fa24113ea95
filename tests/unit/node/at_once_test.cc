// RemoteRegion::putAtOnce() and getAtOnce() with memory that no Node knows.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "unit/node/node_pair.h"

namespace hmc {
namespace {

constexpr size_t kMiB = size_t{1} << 20;

TEST(AtOnce, copiesMemoryThatIsNotRegistered) {
  NodePair nodes({"ipc"});
  auto target = must(nodes.a.allocate("target", 64));
  auto remote = must(nodes.toA.open("target"));
  EXPECT_TRUE(remote.putAtOnce("unregistered", 4, 12));
  EXPECT_EQ(text(target, 0, 17), std::string("\0\0\0\0unregistered\0", 17));
  std::string back(12, ' ');
  EXPECT_TRUE(remote.getAtOnce(back.data(), 4, 12));
  EXPECT_EQ(back, "unregistered");
  EXPECT_EQ(must(Result(nodes.b.counters())).front().operations, 2U);
}

TEST(AtOnce, doesNothingWhereTheCopyIsMoreThanThat) {
  NodePair nodes({"ipc"});
  auto target = must(nodes.a.allocate("target", 2 * kMiB));
  auto shown = must(nodes.a.allocate("shown", 8, {}, Access::read));
  auto remote = must(nodes.toA.open("target"));
  std::vector<char> bytes(2 * kMiB, 'x');
  EXPECT_FALSE(remote.putAtOnce(bytes.data(), 2 * kMiB - 4, 8)) << "passes the end";
  EXPECT_FALSE(remote.putAtOnce(bytes.data(), 0, kMiB + 1)) << "too much";
  EXPECT_FALSE(remote.putAtOnce(bytes.data(), 0, 0)) << "nothing to copy";
  EXPECT_FALSE(must(nodes.toA.open("shown")).putAtOnce(bytes.data(), 0, 8)) << "read-only";
  EXPECT_TRUE(must(nodes.toA.open("shown")).getAtOnce(bytes.data(), 0, 8));
  ASSERT_TRUE(target.revoke().ok());
  EXPECT_FALSE(remote.putAtOnce(bytes.data(), 0, 8)) << "revoked";
  EXPECT_EQ(text(target, 0, 2 * kMiB), std::string(2 * kMiB, '\0'));
}

TEST(AtOnce, isForMemoryThatIsMapped) {
  NodePair nodes({"tcp"});
  auto target = must(nodes.a.allocate("target", 8));
  char bytes[8] = "1234567";
  auto remote = must(nodes.toA.open("target"));
  EXPECT_FALSE(remote.putAtOnce(bytes, 0, 8));
  EXPECT_FALSE(remote.getAtOnce(bytes, 0, 8));
  EXPECT_STREQ(bytes, "1234567");
}

}  // namespace
}  // namespace hmc
