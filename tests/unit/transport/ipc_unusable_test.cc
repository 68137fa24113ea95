#include <gmock/gmock.h>
#include <sys/mman.h>

#include "unit/transport/ipc_fixture.h"

// Memory that was protected after it was registered, at either end, where it is not mapped: the
// transfer fails, and neither process ends.
namespace hmc::ipc {
namespace {

using testing::AnyOf;
using testing::HasSubstr;

constexpr size_t kUnusable = 300000;

class IpcUnusable : public testing::TestWithParam<bool> {
 protected:
  static Region pages() {
    return hostRegion(
        mmap(nullptr, kUnusable, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
        kUnusable);
  }
  void TearDown() override {
    munmap(there_.ptr, kUnusable);
    munmap(here_.ptr, kUnusable);
  }
  Status run(OpKind kind) { return pair_.run(kind, *local_, *remote_, 0, kUnusable); }
  static void allow(const Region& memory, int protection) {
    ASSERT_EQ(mprotect(memory.ptr, kUnusable, protection), 0);
  }
  void expectFailing(OpKind kind) {
    const Status status = run(kind);
    EXPECT_THAT(status.code(), AnyOf(Code::failed, Code::invalidArgument)) << status.toString();
    EXPECT_THAT(status.message(), HasSubstr("unmapped or protected"));
  }

  IpcPair pair_ = GetParam() ? IpcPair(kRingOnly, kRingOnly) : IpcPair();
  const Region there_ = pages();
  const Region here_ = pages();
  std::unique_ptr<Registration> target_ =
      must(pair_.target->registerRegion(there_, Access::readWrite));
  std::unique_ptr<Registration> local_ =
      must(pair_.origin->registerRegion(here_, Access::readWrite));
  std::unique_ptr<RemoteMemory> remote_ = pair_.import(*target_);
};

TEST_P(IpcUnusable, failsTheTransferAndNothingElse) {
  ASSERT_EQ(pair_.pathOf(*remote_), GetParam() ? PathKind::ring : PathKind::processVm);
  for (const Region& memory : {there_, here_}) {
    const bool local = memory.ptr == here_.ptr;
    allow(memory, PROT_NONE);
    expectFailing(OpKind::put);
    expectFailing(OpKind::get);
    allow(memory, PROT_READ);
    expectFailing(local ? OpKind::get : OpKind::put);
    EXPECT_TRUE(run(local ? OpKind::put : OpKind::get).ok());
    allow(memory, PROT_READ | PROT_WRITE);
    EXPECT_TRUE(run(OpKind::put).ok());
    EXPECT_TRUE(run(OpKind::get).ok());
  }
}

INSTANTIATE_TEST_SUITE_P(Ipc, IpcUnusable, testing::Bool(),
                         [](const auto& kind) { return kind.param ? "ring" : "process_vm"; });

}  // namespace
}  // namespace hmc::ipc
