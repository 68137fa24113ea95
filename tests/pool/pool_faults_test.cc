#include "checksum.h"
#include "pool_members.h"

// Members that stop, and a store that goes and comes back.
namespace hmc::test {
namespace {

const std::string kFaultOptions = "capacity=8 host=2097152 heartbeat=200 lease=2000";

TEST_F(PoolTest, aStoppedMemberHoldsUpNobody) {
  PoolMember& first = member(0, kFaultOptions);
  PoolMember& second = member(1, kFaultOptions);
  expectOk(first.ask("event"), "joined 1");
  second.stop();
  PoolMember& third = member(2, kFaultOptions);
  expectOk(first.ask("put 2 host 0 1000 3"));
  expectOk(third.ask("load 2 host 0 1000 3"), "same");
  // Its lease ends; until then it is a member.
  bool gone = false;
  for (int i = 0; i < 3 && !gone; ++i) gone = first.ask("event").text == "left 1";
  EXPECT_TRUE(gone);
  second.resume();
  second.kill();
}

// It finds that nobody answers any more and must not take the others for dead.
TEST_F(PoolTest, aMemberThatWasStoppedForTooLongHarmsNobody) {
  PoolMember& first = member(0, kFaultOptions);
  PoolMember& second = member(1, kFaultOptions);
  PoolMember& third = member(2, kFaultOptions);
  second.stop();
  for (PoolMember* who : {&first, &third}) {
    expectOk(who->ask("await-ranks 0 2"));
    EXPECT_EQ(who->ask("reason").code, "disconnected");
  }
  second.resume();
  // Whether it has heard of it or not.
  const Reply left = second.ask("leave");
  EXPECT_NE(left.code, "SILENT") << left;
  for (PoolMember* who : {&first, &third}) expectOk(who->ask("await-ranks 0 2"));
  PoolMember& fourth = member(1, kFaultOptions);
  for (PoolMember* who : {&first, &third, &fourth}) expectOk(who->ask("await-ranks 0 1 2"));
  expectOk(first.ask("put 2 host 0 100000 5"));
  expectOk(third.ask("load 2 host 0 100000 5"), "same");
}

TEST_F(PoolTest, aMemberThatOthersTookForDeadCopiesNothingMore) {
  PoolMember& first = member(0, kFaultOptions);
  PoolMember& second = member(1, kFaultOptions);
  second.stop();
  expectOk(first.ask("await-ranks 0"));
  second.resume();
  EXPECT_TRUE(
      eventually([&] { return second.ask("put 0 host 0 100000 5").code == "disconnected"; }));
}

// The processor copies in pieces, and each of them could be the one in which the member dies.
TEST_F(PoolTest, aCopyToAMemberThatDiedDoesNotGoOnInTheNext) {
  const std::string options = "capacity=3 host=134217728 heartbeat=200 lease=60000";
  PoolMember& first = member(0, options);
  PoolMember& third = member(2, options + " rank=2");
  const std::string zeros = std::to_string(checksum(std::string(16777216, '\0')));
  for (const std::string written : {"4096", "50331648"}) {
    SCOPED_TRACE(written);
    for (PoolMember* who : {&first, &third}) expectOk(who->ask("await-ranks 0 2"));
    awaitMembers(*keeper_, 2);
    PoolMember& second = member(1, options);
    for (PoolMember* who : {&first, &third}) expectOk(who->ask("await-ranks 0 1 2"));
    first.say("fill-and-stop 1 host 0 134217728 " + written);
    first.awaitStop();
    expectOk(third.ask("sum-load 1 host 117440512 16777216"), zeros);
    second.kill();
    awaitMembers(*keeper_, 2);
    PoolMember next;
    next.say("join " + store_ + " " + options);
    awaitMembers(*keeper_, 3);
    first.resume();
    // It may end before this process has heard of the death: then all of it is in the dead one's
    // memory.
    const Reply ended = first.answer(2 * kPatience);
    EXPECT_TRUE(ended.ok || ended.code == "disconnected" || ended.code == "not_found") << ended;
    expectOk(next.answer(), "1");
    expectOk(next.ask("sum-load 1 host 117440512 16777216"), zeros);
    expectOk(next.ask("leave"));
  }
}

TEST_F(PoolTest, copiesGoOnWithoutTheStore) {
  PoolMember& first = member(0, kFaultOptions);
  PoolMember& second = member(1, kFaultOptions);
  keeper_->kill();
  expectOk(first.ask("put 1 host 0 100000 3"));
  expectOk(second.ask("load 1 host 0 100000 3"), "same");
  PoolMember late;
  const Reply refused = late.join(store_, kFaultOptions + " timeout=1");
  EXPECT_FALSE(refused.ok) << refused;
  // It comes back with nothing in its memory.
  startStore(store_);
  awaitMembers(late, 2);
  expectOk(late.join(store_, kFaultOptions), "2");
  expectOk(late.ask("put 1 host 0 100000 4"));
  expectOk(second.ask("load 1 host 0 100000 4"), "same");
}

TEST_F(PoolTest, moreMemoryThanThereIsIsASentence) {
  PoolMember greedy;
  const Reply refused = greedy.join(store_, "capacity=2 host=1099511627776");
  EXPECT_EQ(refused.code, "exhausted") << refused;
  EXPECT_NE(refused.text.find("host slot"), std::string::npos) << refused;
  expectOk(greedy.join(store_, "capacity=2 host=2097152"), "0");
}

}  // namespace
}  // namespace hmc::test
