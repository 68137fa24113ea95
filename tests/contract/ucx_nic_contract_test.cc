#include <dlfcn.h>

#include "contract/transport_contract.h"
#include "fakes/quiet_ucx.h"
#include "transport/ucx/ucx.h"

namespace hmc::contract {

// Against tests/fakes/fake_ucx_nic, which UCX_ROOT puts before the real library. Within one
// process: that NIC does not know of a peer that is gone.
std::vector<Candidate> candidates() {
  test::keepUcxFromHookingMemory();
  return {{.name = "ucx",
           .make = [] { return ucx::create(); },
           .memories = {heapMemory(), hostMemory()},
           .acrossProcesses = false}};
}

namespace {

// How many puts and gets the NIC has done.
uint64_t movedByNic() {
  void* library = dlopen("libucp.so.0", RTLD_NOW | RTLD_NOLOAD);
  void* moves = library ? dlsym(library, "fakeNicMoves") : nullptr;
  return moves ? reinterpret_cast<uint64_t (*)()>(moves)() : 0;
}

}  // namespace

// Else messages serve, and the hardware's part is not tested.
TEST_P(TransportContract, putsAndGetsGoThroughTheNic) {
  Buffer local = localBuffer(*a_, 4096);
  Buffer target = targetBuffer(*b_, 4096);
  Ends ends = connect();
  auto remote = import(*ends.a, target);
  EXPECT_EQ(remote->path(), "rc_fake/nic0:1");
  for (OpKind kind : {OpKind::put, OpKind::get}) {
    const uint64_t before = movedByNic();
    const Status status = transfer(*a_, *ends.a, kind, local, 0, *remote, 0, 4096);
    ASSERT_TRUE(status.ok()) << status.toString();
    EXPECT_EQ(movedByNic(), before + 1);
  }
}

// A refusal breaks the path. What was under way with it is done all the same, and counted.
TEST_P(TransportContract, whatIsLostWithARefusedOperationIsSentAgain) {
  Ends ends = connect();
  Buffer local = localBuffer(*a_, 8192);
  Buffer target = targetBuffer(*b_, 4096);
  auto remote = import(*ends.a, target);
  Buffer gone = targetBuffer(*b_, 4096);
  auto refused = import(*ends.a, gone);
  gone.registration.reset();
  Completion good(1);
  Completion bad(1);
  const Op ops[] = {makeOp(OpKind::put, local, 0, *refused, 0, 4096, bad),
                    makeOp(OpKind::put, local, 4096, *remote, 0, 4096, good)};
  ASSERT_EQ(ends.a->post(ops), 2u);
  ASSERT_TRUE(drive(*a_, good));
  ASSERT_TRUE(drive(*a_, bad));
  EXPECT_TRUE(good.status().ok()) << good.status().toString();
  EXPECT_EQ(bad.status().code(), Code::notFound) << bad.status().toString();
  EXPECT_EQ(a_->counters().retries, 2u);
}

}  // namespace hmc::contract
