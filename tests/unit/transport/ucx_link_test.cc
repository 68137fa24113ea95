#include "base/error.h"
#include "ucx_fixture.h"

namespace hmc::ucx {

TEST(UcxLink, saysOverWhichOfUcxsTransportsItReachesThePeer) {
  UcxPair pair;
  pair.connect();
  EXPECT_NE(pair.remote->path().find('/'), std::string::npos) << pair.remote->path();
  const auto& paths = pair.a->facts().paths;
  EXPECT_TRUE(std::any_of(paths.begin(), paths.end(), [&](const auto& path) {
    return path.name == pair.remote->path();
  })) << pair.remote->path();
}

TEST(UcxLink, aKeyCannotBeImportedBeforeThePeerIsKnown) {
  UcxPair pair;
  auto remote = pair.toB->importKey(pair.sink->key(), kPatience, nullptr);
  EXPECT_EQ(remote.status().code(), Code::invalidArgument) << remote.status().toString();
}

TEST(UcxLink, aSecondConnectIsRefused) {
  UcxPair pair;
  pair.connect();
  EXPECT_EQ(pair.toB->connect(pair.toA->address()).code(), Code::invalidArgument);
  EXPECT_TRUE(pair.put().ok());
}

TEST(UcxLink, aTargetWhoseLeaseIsOverAppliesNothing) {
  UcxPair pair;
  pair.connect();
  ASSERT_TRUE(pair.put().ok());
  pair.leaseOfB->revoke();
  Status status;
  // The service may have been in the middle of a step, which still applies what it finds; but not
  // in the middle of the next one.
  for (int i = 0; i < 2 && status.ok(); ++i) {
    pair.there.assign(1000, 't');
    status = pair.put();
  }
  EXPECT_EQ(status.code(), Code::disconnected) << status.toString();
  EXPECT_EQ(pair.there, std::string(1000, 't'));
}

TEST(UcxLink, aPeerThatLeavesIsNamedAsTheReason) {
  UcxPair pair;
  pair.connect();
  ASSERT_TRUE(pair.put().ok());
  pair.toA->close(Status(Code::cancelled, "the test"));
  const Status status = pair.put();
  EXPECT_EQ(status.code(), Code::disconnected) << status.toString();
}

TEST(UcxLink, aPeerThatLeavesAnIdleLinkIsNoticedWithoutAnOperation) {
  UcxPair pair;
  pair.connect();
  pair.toA.reset();
  const Deadline deadline = kPatience;
  Status status;
  while (status.ok() && !deadline.passed()) {
    auto again = pair.toB->importKey(pair.sink->key(), kPatience, nullptr);
    status = again.status();
  }
  EXPECT_EQ(status.code(), Code::disconnected) << status.toString();
}

TEST(UcxLink, aPeerThatDoesNotAnswerIsADeadline) {
  UcxPair pair;
  ASSERT_TRUE(pair.toB->connect(pair.toA->address()).ok());
  auto remote = pair.toB->importKey(pair.sink->key(), Deadline::now(), nullptr);
  EXPECT_EQ(remote.status().code(), Code::deadlineExceeded) << remote.status().toString();
  remote = pair.toB->importKey(pair.sink->key(), kPatience, nullptr);
  EXPECT_TRUE(remote.ok()) << remote.status().toString();
}

TEST(UcxLink, bytesUnderWayAreBounded) {
  UcxPair pair;
  pair.connect();
  constexpr size_t kPiece = size_t{256} << 10;
  std::string large(size_t{64} << 20, 'l');
  std::string room(large.size(), '\0');
  auto source = must(pair.a->registerRegion({large.data(), large.size(), {}}, Access::readWrite));
  auto sink = must(pair.b->registerRegion({room.data(), room.size(), {}}, Access::readWrite));
  auto remote = must(pair.toB->importKey(sink->key(), kPatience, nullptr));
  Completion completion(large.size() / kPiece);
  std::vector<Op> ops;
  for (size_t at = 0; at < large.size(); at += kPiece) {
    ops.push_back(
        {OpKind::put, large.data() + at, source.get(), remote.get(), at, kPiece, &completion});
  }
  std::span<const Op> rest(ops);
  const size_t first = pair.toB->post(rest);
  EXPECT_GT(first, 0u);
  EXPECT_LT(first, ops.size());
  rest = rest.subspan(first);
  while (!completion.done()) {
    pair.a->progress(std::chrono::milliseconds(100));
    rest = rest.subspan(pair.toB->post(rest));
  }
  EXPECT_TRUE(completion.status().ok()) << completion.status().toString();
  EXPECT_EQ(room, large);
}

}  // namespace hmc::ucx
