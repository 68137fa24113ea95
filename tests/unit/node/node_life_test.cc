// How long memory, Nodes and processes last.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <vector>

#include "unit/node/node_pair.h"

namespace hmc {
namespace {

using namespace std::chrono_literals;

TEST(NodeLife, memoryWithoutANameIsOursAlone) {
  NodePair nodes;
  auto target = must(nodes.a.allocate("target", 64));
  auto first = must(nodes.b.allocate("", 64));
  auto second = must(nodes.b.allocate("", 64));
  fill(second, 5);
  EXPECT_TRUE(must(nodes.toA.open("target")).put(second, 0, 0, 64).ok());
  EXPECT_EQ(text(target, 0, 64), text(second, 0, 64));
  EXPECT_EQ(nodes.toB.open("").status().code(), Code::notFound);
}

TEST(NodeLife, theOwnerOfMemoryGoesWhenNoTransferUsesItAnyMore) {
  NodePair nodes({"tcp"});
  constexpr size_t kSize = size_t{8} << 20;
  auto target = must(nodes.a.allocate("target", kSize));
  auto remote = must(nodes.toA.open("target"));
  auto owner = std::make_shared<std::vector<char>>(kSize, 'o');
  std::weak_ptr<std::vector<char>> alive = owner;
  auto start = [&] {
    auto local = must(nodes.b.registerMemory("", owner->data(), kSize, Access::read, owner));
    owner.reset();
    return must(remote.startPut(local, {{0, 0, kSize}}));
  };
  {
    Ticket ticket = start();
    EXPECT_FALSE(alive.expired());
    ASSERT_TRUE(ticket.wait().ok());
  }
  ASSERT_TRUE(nodes.toA.notify("which looks through the transfers").ok());
  EXPECT_TRUE(alive.expired());
  EXPECT_EQ(text(target, kSize - 4, 4), "oooo");
}

TEST(NodeLife, aCopyIsDoneAtOnceWhereNothingElseIsNeeded) {
  NodePair nodes;
  auto target = must(nodes.a.allocate("target", 4 << 20));
  auto local = must(nodes.b.allocate("local", 4 << 20));
  auto remote = must(nodes.toA.open("target"));
  fill(local, 1);
  EXPECT_TRUE(remote.putAtOnce(local, 8, 16, 100));
  EXPECT_EQ(text(target, 16, 100), text(local, 8, 100));
  fill(target, 77);
  EXPECT_TRUE(remote.getAtOnce(local, 8, 16, 100));
  EXPECT_EQ(text(target, 16, 100), text(local, 8, 100));
  EXPECT_FALSE(remote.putAtOnce(local, 0, 0, 4 << 20)) << "too much";
  EXPECT_FALSE(remote.putAtOnce(local, 0, (4 << 20) - 4, 8)) << "out of range";
  EXPECT_FALSE(remote.putAtOnce(target, 0, 0, 8)) << "memory of another Node";
  nodes.a.close();
  EXPECT_EQ(nodes.a.nextNote(0ms).status().code(), Code::disconnected);
}

TEST(NodeLife, aForkedChildIsToldToMakeItsOwn) {
  NodePair nodes;
  auto target = must(nodes.a.allocate("target", 4096));
  auto local = must(nodes.b.allocate("local", 4096));
  auto remote = must(nodes.toA.open("target"));
  pid_t child = fork();
  if (child == 0) _exit(remote.put(local, 0, 0, 8).code() == Code::invalidArgument ? 0 : 1);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  EXPECT_TRUE(remote.put(local, 0, 0, 8).ok());
}

// The parent's stay refused when the child has its own.
int useOwnNodes(const std::function<Status()>& useParents) {
  NodePair own;
  auto target = must(own.a.allocate("target", 4096));
  auto local = must(own.b.allocate("local", 4096));
  if (!must(own.toA.open("target")).put(local, 0, 0, 8).ok()) return 1;
  return useParents().code() == Code::invalidArgument ? 0 : 2;
}

TEST(NodeLife, aForkedChildCanMakeItsOwn) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP()
      << "the thread sanitizer takes a forked child's threads for its parent's and ends it";
#endif
  NodePair nodes;
  auto target = must(nodes.a.allocate("target", 4096));
  auto local = must(nodes.b.allocate("local", 4096));
  auto remote = must(nodes.toA.open("target"));
  pid_t child = fork();
  if (child == 0) _exit(useOwnNodes([&] { return remote.put(local, 0, 0, 8); }));
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_TRUE(WIFEXITED(status));
}

}  // namespace
}  // namespace hmc
