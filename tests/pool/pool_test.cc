#include "pool_members.h"
#include "process/peer.h"

// Members of one host, each a process.
namespace hmc::test {
namespace {

const std::string kFour = "capacity=4 host=4194304";

TEST_F(PoolTest, slotsLieAtTheSameAddressesEverywhere) {
  PoolMember& first = member(0, kFour);
  PoolMember& second = member(1, "host=4194304");
  for (int rank : {0, 1}) {
    const std::string ask = "slot " + std::to_string(rank) + " host";
    const Reply here = first.ask(ask);
    const Reply there = second.ask(ask);
    EXPECT_TRUE(here.ok) << here;
    EXPECT_EQ(here.text, there.text);
    EXPECT_NE(here.text.find(" 4194304 mapped"), std::string::npos) << here;
  }
  EXPECT_NE(first.ask("slot 0 host").text, first.ask("slot 1 host").text);
}

TEST_F(PoolTest, loadsAndStoresReachEveryMemberOfTheHost) {
  PoolMember& first = member(0, kFour);
  PoolMember& second = member(1, kFour);
  PoolMember& third = member(2, kFour);
  expectOk(first.ask("store-at 2 host 4096 100000 7"));
  expectOk(third.ask("load 2 host 4096 100000 7"), "same");
  expectOk(second.ask("load 2 host 4096 100000 7"), "same");
  expectOk(third.ask("store-at 0 host 0 4194304 9"));
  expectOk(first.ask("load 0 host 0 4194304 9"), "same");
}

TEST_F(PoolTest, copiesReachOwnAndOtherSlotsAndBetweenThem) {
  PoolMember& first = member(0, "capacity=3 host=67108864");
  PoolMember& second = member(1, "host=67108864");
  PoolMember& third = member(2, "host=67108864");
  for (size_t size : {size_t{1}, size_t{8}, size_t{4096}, kMiB, 3 * kMiB + 5, 40 * kMiB}) {
    const std::string what = " host 8 " + std::to_string(size) + " 5";
    expectOk(first.ask("put 0" + what));
    expectOk(second.ask("get 0" + what), "same");
    expectOk(first.ask("put 1" + what));
    expectOk(second.ask("load 1" + what), "same");
    expectOk(third.ask("move 1" + what + " 2 host 16"));
    expectOk(third.ask("load 2 host 16 " + std::to_string(size) + " 5"), "same");
    // Between two others.
    expectOk(first.ask("move 2 host 16 " + std::to_string(size) + " 0 1 host 24"));
    expectOk(second.ask("load 1 host 24 " + std::to_string(size) + " 5"), "same");
  }
  expectOk(first.ask("scatter 1 host 0 1000 3"), "same");
  expectOk(first.ask("rows 2 host 64 1000 3"), "same");
}

TEST_F(PoolTest, overlappingCopiesWithinOneSlotMove) {
  PoolMember& first = member(0, "capacity=2 host=33554432");
  PoolMember& second = member(1, "host=33554432");
  for (PoolMember* who : {&first, &second}) {
    expectOk(who->ask("put 0 host 0 20000000 4"));
    expectOk(who->ask("move 0 host 0 20000000 0 0 host 1000"));
    expectOk(who->ask("get 0 host 1000 20000000 4"), "same");
  }
}

TEST_F(PoolTest, theLastByteIsInRangeAndTheNextIsNot) {
  PoolMember& first = member(0, kFour);
  PoolMember& second = member(1, "host=1000");
  expectOk(first.ask("put 0 host 4194303 1 2"));
  expectOk(first.ask("put 1 host 999 1 2"));
  expectOk(second.ask("load 1 host 999 1 2"), "same");
  const Reply beyond = first.ask("put 1 host 999 2 2");
  EXPECT_EQ(beyond.code, "out_of_range") << beyond;
  EXPECT_NE(beyond.text.find("1000 bytes"), std::string::npos) << beyond;
  EXPECT_EQ(first.ask("put 3 host 0 1 2").code, "not_found");
}

TEST_F(PoolTest, ranksAreTheLowestFreeOnesAndCanBeChosen) {
  member(0, kFour);
  member(2, kFour + " rank=2");
  member(1, kFour);
  member(3, kFour);
  PoolMember late;
  const Reply full = late.join(store_, kFour + " timeout=1");
  EXPECT_FALSE(full.ok) << full;
  EXPECT_NE(full.text.find("4"), std::string::npos) << full;
  PoolMember twin;
  const Reply taken = twin.join(store_, kFour + " rank=2 timeout=1");
  EXPECT_EQ(taken.code, "already_exists") << taken;
}

TEST_F(PoolTest, membersHearOfEachOther) {
  PoolMember& first = member(0, kFour);
  member(1, kFour);
  expectOk(first.ask("event"), "joined 1");
  PoolMember& third = member(2, kFour);
  expectOk(first.ask("event"), "joined 2");
  expectOk(first.ask("ranks"), "0 1 2 ");
  expectOk(third.ask("event"), "joined 0");
  expectOk(third.ask("event"), "joined 1");
  expectOk(third.ask("leave"));
  expectOk(first.ask("event"), "left 2");
  expectOk(first.ask("ranks"), "0 1 ");
  EXPECT_EQ(first.ask("put 2 host 0 8 1").code, "not_found");
}

TEST_F(PoolTest, aKilledMemberIsNoticedAndItsRankGivenAgain) {
  PoolMember& first = member(0, kFour);
  PoolMember& second = member(1, kFour);
  PoolMember& third = member(2, kFour);
  expectOk(first.ask("event"), "joined 1");
  expectOk(first.ask("event"), "joined 2");
  expectOk(first.ask("put 1 host 0 1000 1"));
  second.kill();
  expectOk(first.ask("event"), "left 1");
  // A pointer into the dead member's slot reaches nobody, and does no harm.
  expectOk(first.ask("load 1 host 0 1000 1"), "different");
  EXPECT_EQ(first.ask("put 1 host 0 8 1").code, "not_found");
  // The others go on.
  expectOk(first.ask("put 2 host 0 100000 3"));
  expectOk(third.ask("load 2 host 0 100000 3"), "same");
  awaitMembers(first, 2);
  PoolMember& again = member(1, kFour);
  expectOk(first.ask("event"), "joined 1");
  expectOk(first.ask("load 1 host 0 1000 1"), "different");
  expectOk(first.ask("put 1 host 0 1000 6"));
  expectOk(again.ask("load 1 host 0 1000 6"), "same");
}

TEST_F(PoolTest, whoDiesAndWhoLeavesAreToldApart) {
  PoolMember& first = member(0, kFour);
  PoolMember& second = member(1, kFour);
  PoolMember& third = member(2, kFour);
  PoolMember& fourth = member(3, kFour);
  for (PoolMember* who : {&first, &third}) {
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(who->ask("event").ok);
  }
  second.kill();
  // Whichever of the two is the quicker, and tells the store.
  for (PoolMember* who : {&first, &third}) {
    expectOk(who->ask("event"), "left 1");
    EXPECT_EQ(who->ask("reason").code, "disconnected");
  }
  expectOk(fourth.ask("leave"));
  for (PoolMember* who : {&first, &third}) {
    expectOk(who->ask("event"), "left 3");
    expectOk(who->ask("reason"));
  }
}

TEST_F(PoolTest, aRankThatIsTakenIsWaitedForNoLongerThanALease) {
  const std::string options = "capacity=4 host=4096 heartbeat=100 lease=500";
  member(0, options);
  PoolMember twin;
  const auto before = std::chrono::steady_clock::now();
  const Reply taken = twin.join(store_, options + " rank=0 timeout=60");
  EXPECT_LT(std::chrono::steady_clock::now() - before, std::chrono::seconds(30));
  EXPECT_EQ(taken.code, "already_exists") << taken;
  EXPECT_NE(taken.text.find("taken by the process at tcp://127.0.0.1:"), std::string::npos)
      << taken;
}

TEST_F(PoolTest, eachCopyOfABatchHasAnOutcomeOfItsOwn) {
  PoolMember& first = member(0, "capacity=3 host=8388608");
  PoolMember& second = member(1, "host=8388608");
  // Large enough that the memory of this process is registered for it.
  expectOk(first.ask("batch 2097152 5 1 0 pattern 1 2097152 null 2 0 pattern 0 0 pattern"),
           "ok invalid_argument not_found ok");
  expectOk(second.ask("load 1 host 0 2097152 5"), "same");
  expectOk(first.ask("load 0 host 0 2097152 5"), "same");
}

// Small ones are looked up in runs: what ends a run must not change what follows it. Mapped slots,
// and slots behind a transport.
TEST_F(PoolTest, copiesOfABatchMayGoAnywhereInAnyOrder) {
  for (const std::string transport : {"ipc", "tcp"}) {
    const std::string options =
        "name=" + transport + " transports=" + transport + " capacity=3 host=4194304";
    PoolMember& first = member(0, options);
    PoolMember& second = member(1, options);
    PoolMember& third = member(2, options);
    expectOk(first.ask("batch 4096 5 1 0 pattern 1 8192 pattern 1 4194000 pattern 2 0 pattern "
                       "0 0 pattern 1 16384 null 1 16384 pattern 0 8192 pattern"),
             "ok ok out_of_range ok ok invalid_argument ok ok");
    for (const char* offset : {"0", "8192", "16384"})
      expectOk(second.ask(std::string("load 1 host ") + offset + " 4096 5"), "same");
    expectOk(third.ask("load 2 host 0 4096 5"), "same");
    for (const char* offset : {"0", "8192"})
      expectOk(first.ask(std::string("load 0 host ") + offset + " 4096 5"), "same");
    expectOk(first.ask("scatter 2 host 0 20000 6"), "same");
  }
}

TEST_F(PoolTest, leavingAndJoiningAgainGoesOnForAsLongAsOneLikes) {
  PoolMember& first = member(0, kFour);
  PoolMember& second = member(1, kFour);
  for (int round = 0; round < 10; ++round) {
    expectOk(first.ask("put 1 host 0 5000 " + std::to_string(round)));
    expectOk(second.ask("load 1 host 0 5000 " + std::to_string(round)), "same");
    expectOk(second.ask("leave"));
    const Reply back = second.join(store_, kFour);
    expectOk(back, "1");
    expectOk(second.ask("get 0 host 0 8 1"), "different");
  }
}

TEST_F(PoolTest, membersThatComeAndGoLeaveNothingBehind) {
  PoolMember& first = member(0, kFour);
  PoolMember& second = member(1, kFour);
  auto comeAndGo = [&](int times) {
    for (int i = 0; i < times; ++i) {
      expectOk(second.ask("leave"));
      expectOk(second.join(store_, kFour), "1");
    }
    return std::stol(first.ask("mappings").text);
  };
  const long before = comeAndGo(15);
  EXPECT_LT(comeAndGo(30), before + 30);  // a stack that is not given back is two mappings
}

TEST_F(PoolTest, whoBringsNothingCanCopy) {
  PoolMember& first = member(0, kFour);
  PoolMember& guest = member(1, "");
  expectOk(guest.ask("put 0 host 0 100000 8"));
  expectOk(first.ask("load 0 host 0 100000 8"), "same");
  const Reply none = first.ask("put 1 host 0 8 8");
  EXPECT_EQ(none.code, "not_found") << none;
}

TEST_F(PoolTest, optionsThatDoNotFitAreRefusedWithBothValues) {
  member(0, kFour);
  PoolMember other;
  const Reply capacity = other.join(store_, "capacity=5 host=4096");
  EXPECT_EQ(capacity.code, "invalid_argument") << capacity;
  EXPECT_NE(capacity.text.find("capacity of 4"), std::string::npos) << capacity;
  const Reply large = other.join(store_, "host=4194305");
  EXPECT_EQ(large.code, "out_of_range") << large;
  EXPECT_NE(large.text.find("4194304"), std::string::npos) << large;
  const Reply stride = other.join(store_, "hostStride=2097152");
  EXPECT_EQ(stride.code, "invalid_argument") << stride;
  PoolMember first;
  EXPECT_EQ(first.join(store_, "name=another").code, "invalid_argument");
  EXPECT_EQ(first.join(store_, "name=another capacity=70000").code, "invalid_argument");
  EXPECT_EQ(first.join(store_, "name=another capacity=2 host=4096 numa=5000").code,
            "invalid_argument");
  EXPECT_EQ(first.join(store_, "name=another capacity=65535 hostStride=4398046511104").code,
            "exhausted");
  expectOk(other.join(store_, "host=4194304"), "1");
}

// Node 0 is there everywhere.
TEST_F(PoolTest, hostSlotsLieOnTheNumaNodeThatWasChosen) {
  PoolMember& placed = member(0, kFour + " numa=0");
  expectOk(placed.ask("placement"), "bound to 0, pages on 0");
  PoolMember& anywhere = member(1, kFour);
  EXPECT_EQ(anywhere.ask("placement").text.rfind("free, pages on", 0), 0u);
}

TEST_F(PoolTest, aPoolThatNobodyUsesAnyMoreMayHaveAnotherLayout) {
  PoolMember& first = member(0, kFour);
  expectOk(first.ask("leave"));
  expectOk(first.join(store_, "capacity=2 host=8388608"), "0");
  EXPECT_NE(first.ask("slot 0 host").text.find(" 8388608 "), std::string::npos);
}

TEST_F(PoolTest, deviceSlotsWithoutAnAcceleratorAreHostMemory) {
  PoolMember& first = member(0, "capacity=2 host=2097152 device=4194304");
  PoolMember& second = member(1, "capacity=2 host=2097152 device=4194304");
  expectOk(first.ask("put 1 device 0 4194304 2"));
  expectOk(second.ask("load 1 device 0 4194304 2"), "same");
  expectOk(second.ask("move 1 device 0 1000000 0 0 host 0"));
  expectOk(first.ask("load 0 host 0 1000000 2"), "same");
}

TEST_F(PoolTest, severalPoolsShareAStore) {
  member(0, "name=a capacity=2 host=2097152");
  member(0, "name=b capacity=3 host=4194304");
  PoolMember& second = member(1, "name=b host=4194304");
  expectOk(second.ask("ranks"), "0 1 ");
}

TEST(PoolStore, isServedByTheFirstMemberThatOffersIt) {
  const std::string store = "tcp://127.0.0.1:" + std::to_string(freePort());
  PoolMember first;
  PoolMember second;
  for (auto [who, rank] : {std::pair{&first, "0"}, std::pair{&second, "1"}}) {
    const Reply joined = who->join(store, "serve=1 capacity=2 host=4096");
    EXPECT_TRUE(joined.ok) << joined;
    EXPECT_EQ(joined.text, rank);
  }
  const Reply sent = second.ask("put 0 host 0 100 1");
  EXPECT_TRUE(sent.ok) << sent;
  EXPECT_EQ(first.ask("load 0 host 0 100 1").text, "same");
}

TEST(PoolStore, thatNobodyServesIsAnErrorInTime) {
  PoolMember member;
  const Reply refused = member.join("tcp://127.0.0.1:1", "capacity=2 host=4096 timeout=1");
  EXPECT_FALSE(refused.ok);
  EXPECT_NE(refused.text.find("127.0.0.1:1"), std::string::npos) << refused;
}

}  // namespace
}  // namespace hmc::test
