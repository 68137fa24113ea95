#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <memory>
#include <vector>

#include "fakes/link_options.h"
#include "transport/verbs/verbs.h"

namespace hmc::verbs {
namespace {

// Small things of the heap, on every page of it that is in use.
using Heap = std::vector<std::unique_ptr<char>>;

Heap fill() {
  Heap heap;
  for (int i = 0; i < 10000; ++i) heap.push_back(std::make_unique<char>('x'));
  return heap;
}

TEST(VerbsFork, leavesAChildTheWholeHeap) {
  auto transport = create();
  if (!transport.ok()) GTEST_SKIP() << transport.status().message();
  Heap before = fill();
  auto link = (*transport)->openLink(test::linkOptions(true));
  ASSERT_TRUE(link.ok()) << link.status().message();
  Heap after = fill();
  const pid_t child = fork();
  if (child == 0) {
    // A page that is not there ends the child with a signal.
    size_t seen = 0;
    for (const Heap* heap : {&before, &after}) {
      for (const auto& one : *heap) seen += *one == 'x' ? 1 : 0;
    }
    _exit(seen == before.size() + after.size() ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace hmc::verbs
