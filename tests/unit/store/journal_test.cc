#include "store/journal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "fakes/must.h"
#include "store/group.h"
#include "store/server.h"
#include "unit/store/waits.h"

namespace hmc::store {
namespace {

using test::must;

constexpr std::chrono::milliseconds kJournalTtl{1000};
const State::Time kNow = State::Time() + std::chrono::hours(1);

class JournalTest : public testing::Test {
 protected:
  JournalTest()
      : folder(testing::TempDir() + "hmc_journal_" + std::to_string(getpid())),
        path(folder + "/journal") {
    std::filesystem::remove_all(folder);
  }
  ~JournalTest() override { std::filesystem::remove_all(folder); }

  // What a server knows that is started now.
  static std::string text(const State& state) {
    std::string all;
    for (const Record& record : state.list("")) all += record.key + "=" + *record.value + " ";
    return all;
  }
  std::string restarted() {
    State state;
    const auto journal = must(Journal::open(folder, state, kNow));
    return text(state);
  }
  std::string bytes() const {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  void write(const std::string& content) const {
    std::ofstream(path, std::ios::binary | std::ios::trunc) << content;
  }

  const std::string folder;
  const std::string path;
};

TEST_F(JournalTest, EveryKindOfChangeIsThereAfterARestart) {
  {
    State state;
    auto journal = must(Journal::open(folder, state, kNow));
    ASSERT_TRUE(state.set("a", "1").ok());
    ASSERT_TRUE(state.set("b", "2").ok());
    ASSERT_TRUE(state.set("a", "3").ok());
    ASSERT_TRUE(must(state.compareAndSet("c", std::nullopt, "4")).done);
    EXPECT_EQ(must(state.add("d", 5)), 5);
    EXPECT_EQ(must(state.add("d", 6)), 11);
    EXPECT_EQ(must(state.append("e", std::string("x\0y", 3))), 3u);
    state.remove("b");
    ASSERT_TRUE(state.set("p/1", "").ok());
    ASSERT_TRUE(state.set("p/2", "").ok());
    state.removeAll("p/");
    EXPECT_TRUE(journal->commit().ok());
  }
  EXPECT_EQ(restarted(), std::string("a=3 c=4 d=11 e=x\0y ", 19));
  EXPECT_EQ(restarted(), std::string("a=3 c=4 d=11 e=x\0y ", 19));
}

TEST_F(JournalTest, LeasesComeBackWithTheirKeysAndTheirWholeTime) {
  {
    State state;
    auto journal = must(Journal::open(folder, state, kNow));
    for (uint64_t lease : {1, 2, 3}) ASSERT_TRUE(state.grant(lease, kJournalTtl, kNow).ok());
    ASSERT_TRUE(state.set("one", "", 1).ok());
    ASSERT_TRUE(state.set("two", "", 2).ok());
    ASSERT_TRUE(state.set("three", "", 3).ok());
    ASSERT_TRUE(state.set("free", "", State::kNoLease).ok());
    state.revoke(2);
    EXPECT_TRUE(journal->commit().ok());
  }
  State state;
  const State::Time later = kNow + std::chrono::hours(5);
  auto journal = must(Journal::open(folder, state, later));
  EXPECT_EQ(text(state), "free= one= three= ");
  EXPECT_FALSE(state.keepAlive(2, later));
  EXPECT_TRUE(state.keepAlive(3, later + kJournalTtl / 2));
  state.expire(later + kJournalTtl - std::chrono::milliseconds(1));
  EXPECT_EQ(text(state), "free= one= three= ");
  state.expire(later + kJournalTtl);
  EXPECT_EQ(text(state), "free= three= ");
}

TEST_F(JournalTest, ATornLastRecordIsDropped) {
  {
    State state;
    auto journal = must(Journal::open(folder, state, kNow));
    ASSERT_TRUE(state.set("a", "1").ok());
    ASSERT_TRUE(journal->commit().ok());
  }
  const std::string before = bytes();
  {
    State state;
    auto journal = must(Journal::open(folder, state, kNow));
    ASSERT_TRUE(state.set("b", "2").ok());
    ASSERT_TRUE(journal->commit().ok());
  }
  const std::string after = bytes();
  for (size_t size = before.size(); size < after.size(); ++size) {
    write(after.substr(0, size));
    EXPECT_EQ(restarted(), "a=1 ") << size << " of " << after.size();
  }
  // Long enough, but not filled.
  write(before + std::string(after.size() - before.size(), '\0'));
  EXPECT_EQ(restarted(), "a=1 ");
  write(after.substr(0, after.size() - 1) + "x");
  EXPECT_EQ(restarted(), "a=1 ");
  // What is dropped is not in the way of what comes next.
  {
    State state;
    auto journal = must(Journal::open(folder, state, kNow));
    ASSERT_TRUE(state.set("c", "3").ok());
    ASSERT_TRUE(journal->commit().ok());
  }
  EXPECT_EQ(restarted(), "a=1 c=3 ");
}

TEST_F(JournalTest, DamageInTheMiddleIsRefused) {
  {
    State state;
    auto journal = must(Journal::open(folder, state, kNow));
    ASSERT_TRUE(state.set("a", "1").ok());
    ASSERT_TRUE(state.set("b", "2").ok());
    ASSERT_TRUE(journal->commit().ok());
  }
  const std::string good = bytes();
  const size_t records = good.find('\n') + 1;
  const size_t second = records + (good.size() - records) / 2;
  for (size_t at = 0; at < second; ++at) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 0x20);
    write(bad);
    State state;
    const auto refused = Journal::open(folder, state, kNow);
    ASSERT_FALSE(refused.ok()) << at;
    EXPECT_THAT(refused.status().message(), testing::HasSubstr(path));
    EXPECT_EQ(bytes(), bad) << "a journal that was refused was changed";
  }
  write(good);
  EXPECT_EQ(restarted(), "a=1 b=2 ");
}

TEST_F(JournalTest, IsWrittenAnewWhenItHasDoubled) {
  State state;
  auto journal = must(Journal::open(folder, state, kNow));
  const std::string value(100000, 'x');
  size_t most = 0;
  for (int i = 0; i < 200; ++i) {
    ASSERT_TRUE(state.set("key", value + std::to_string(i)).ok());
    ASSERT_TRUE(journal->commit().ok());
    most = std::max<size_t>(most, std::filesystem::file_size(path));
  }
  EXPECT_LT(most, size_t{3} << 20) << "of 20 MB that were written";
  journal.reset();
  EXPECT_EQ(restarted(), "key=" + value + "199 ");
}

TEST_F(JournalTest, AFolderBelongsToOneServer) {
  auto first = must(Server::start("tcp://127.0.0.1:0", {.data = folder}));
  const auto second = Server::start("tcp://127.0.0.1:0", {.data = folder});
  EXPECT_EQ(second.status().code(), Code::alreadyExists);
  EXPECT_THAT(second.status().message(), testing::HasSubstr(folder));
  EXPECT_FALSE(Server::start("tcp://127.0.0.1:0", {.data = path + "/none"}).ok());
}

// The members are too slow to come back before somebody asks for a rank.
TEST_F(JournalTest, ARankIsNotGivenAgainBecauseTheServerWasRestarted) {
  auto server = must(Server::start("tcp://127.0.0.1:0", {.data = folder}));
  const std::string address = server->address();
  GroupOptions options;
  options.name = "pool";
  options.capacity = 4;
  options.ttl = kLong;
  {
    // The connection ends without a word, as if its process had been stopped.
    auto stopped = must(openStore(address, {}, kLong));
    auto lease = must(stopped->lease(kLong, kLong));
    ASSERT_TRUE(stopped->set("groups/pool/rank/0", "+0123456789abcdef", kLong, lease).ok());
    server.reset();
  }
  server = must(Server::start(address, {.data = folder}));
  auto joined = must(Group::join(must(openStore(address, {}, kLong)), options, kLong));
  EXPECT_EQ(joined->self().rank, 1u);
}

}  // namespace
}  // namespace hmc::store
