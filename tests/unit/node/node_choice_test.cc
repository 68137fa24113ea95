#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <future>

#include "base/error.h"
#include "unit/node/fake_pair.h"
#include "unit/node/with_measurements.h"

// Which transports serve a region, which size takes which of them, and what happens when one
// cannot.

namespace hmc {
namespace {

using namespace std::chrono_literals;

using testing::HasSubstr;
using testing::Not;

constexpr size_t kChoiceSize = size_t{1} << 20;

// Two Nodes of which b has opened a region of a's.
struct OpenedPair : FakePair {
  struct Memory {
    std::shared_ptr<LocalMemory> target;
    std::shared_ptr<LocalMemory> local;
    std::shared_ptr<RemoteMapping> remote;
  };
  explicit OpenedPair(std::vector<FakeTransport> transports)
      : FakePair(std::move(transports)),
        memory{allocate(*a, "target", kChoiceSize), allocate(*b, "local", kChoiceSize),
               open("target")} {}
  const Memory memory;
};

class NodeChoice : public WithMeasurements {
 protected:
  static FakeTransport shy() {
    FakeTransport one("shy", {{"", 1, 1000}});
    one.a.onDemand = one.b.onDemand = true;
    return one;
  }
  static FakeTransport plain() { return FakeTransport("plain", {{"", 1000, 1}}); }
  // Quick for small puts, and for large ones.
  static FakeTransport nimble() { return FakeTransport("nimble", {{"", 1000, 1}}); }
  static FakeTransport wide() { return FakeTransport("wide", {{"", 100000, 100}}); }
  static constexpr size_t kSmall = 4096;
  static constexpr size_t kLarge = size_t{512} << 10;

  static Status put(const RemoteMapping& remote, const LocalMemory& local, size_t size) {
    return remote.run(OpKind::put, local, 0, 0, size, kDefaultTimeout);
  }
  // The transport of a batch.
  static std::string carrier(const std::shared_ptr<RemoteMapping>& remote,
                             const std::shared_ptr<LocalMemory>& local,
                             const std::vector<Block>& blocks, OpKind kind = OpKind::put) {
    Ticket ticket = must(RemoteMapping::start(remote, kind, local, blocks));
    EXPECT_TRUE(ticket.wait().ok());
    return ticket.transport();
  }
  static void sayHello(const LocalMemory& memory) { std::memcpy(memory.host(), "hello", 5); }
  static std::string read(const LocalMemory& memory) { return std::string(memory.host(), 5); }
};

TEST_F(NodeChoice, aTransportThatChangesTheProcessIsLeftAloneUntilItIsNamed) {
  OpenedPair nodes({shy(), plain()});
  const auto& [target, local, remote] = nodes.memory;
  EXPECT_EQ(remote->path(), "plain");
  EXPECT_TRUE(put(*remote, *local, kChoiceSize).ok());
  EXPECT_EQ(*nodes.fake("shy").a.registered, 0);
  EXPECT_EQ(*nodes.fake("shy").b.registered, 0);
  EXPECT_EQ(nodes.used(8), "plain");
  EXPECT_THAT(nodes.reason("shy"), HasSubstr("only when asked for by name"));
  EXPECT_THAT(nodes.reason("plain"), Not(HasSubstr("by name")));

  auto named = nodes.open("target", {"shy"});
  EXPECT_EQ(named->path(), "shy");
  EXPECT_EQ(*nodes.fake("shy").a.registered, 1) << "the peer asked for it";
  EXPECT_EQ(*nodes.fake("shy").b.registered, 0) << "nothing was moved yet";
  sayHello(*local);
  EXPECT_TRUE(put(*named, *local, 5).ok());
  EXPECT_EQ(read(*target), "hello");
  nodes.open("target", {"shy"});
  EXPECT_EQ(*nodes.fake("shy").a.registered, 1) << "once is enough";
  EXPECT_EQ(*nodes.fake("shy").b.registered, 1);
}

TEST_F(NodeChoice, aTransportThatTheNodeWasToldToUseNeedNotBeNamedAgain) {
  FakePair nodes({shy(), plain()}, {"shy", "plain"});
  auto target = FakePair::allocate(*nodes.a, "target", kChoiceSize);
  EXPECT_EQ(nodes.open("target")->path(), "shy");
  EXPECT_THAT(nodes.reason("shy"), Not(HasSubstr("by name")));
}

TEST_F(NodeChoice, aTransportThatWantsToBeNamedServesWhereNothingElseDoes) {
  FakePair nodes({shy(), plain()});
  *nodes.fake("plain").a.refusal = error(Code::exhausted, "no more room in it");
  auto target = FakePair::allocate(*nodes.a, "target", kChoiceSize);
  EXPECT_EQ(nodes.open("target")->path(), "shy");
  EXPECT_EQ(nodes.used(8), "shy");
}

TEST_F(NodeChoice, theTargetMakesKeysOnlyForTransportsThatTheOriginWants) {
  FakeTransport one = shy();
  FakePair nodes({one, plain(), wide()});
  auto target = FakePair::allocate(*nodes.a, "target", kChoiceSize);
  EXPECT_EQ(nodes.open("target", {"wide"})->path(), "wide");
  EXPECT_EQ(*nodes.fake("shy").a.registered, 0);
}

TEST_F(NodeChoice, memoryIsRegisteredWithATransportWhenItIsFirstUsedThere) {
  FakePair nodes({nimble(), wide(), plain()});
  auto count = [&](const std::string& name) {
    return std::pair(nodes.fake(name).a.registered->load(), nodes.fake(name).b.registered->load());
  };
  using Counts = std::pair<int, int>;  // at the target, at the origin
  auto target = FakePair::allocate(*nodes.a, "target", kChoiceSize);
  auto local = FakePair::allocate(*nodes.b, "local", kChoiceSize);
  for (const char* name : {"nimble", "wide", "plain"}) EXPECT_EQ(count(name), Counts(0, 0)) << name;

  auto remote = nodes.open("target");
  EXPECT_EQ(count("nimble"), Counts(1, 0)) << "nothing was moved yet";
  EXPECT_EQ(count("wide"), Counts(1, 0));
  EXPECT_EQ(count("plain"), Counts(0, 0)) << "never the quickest";
  EXPECT_TRUE(put(*remote, *local, kSmall).ok());
  EXPECT_EQ(count("nimble"), Counts(1, 1));
  EXPECT_EQ(count("wide"), Counts(1, 0)) << "no large put yet";
  EXPECT_TRUE(put(*remote, *local, kLarge).ok());
  EXPECT_EQ(count("wide"), Counts(1, 1));
  EXPECT_EQ(count("plain"), Counts(0, 0));
}

TEST_F(NodeChoice, registeringMuchMemoryDoesNotStopTheControlThread) {
  std::promise<void> begun;
  std::promise<void> release;
  FakeTransport slow = plain();
  slow.a.registering = [&] {
    begun.set_value();
    release.get_future().wait();
  };
  FakePair nodes({slow});
  auto target = FakePair::allocate(*nodes.a, "target", size_t{65} << 20);
  auto opened = std::async(std::launch::async, [&] { return nodes.open("target")->path(); });
  begun.get_future().wait();
  EXPECT_TRUE(nodes.b->probe(*nodes.toA, kDefaultTimeout).ok()) << "a answers meanwhile";
  Status late = nodes.b->open(nodes.toA, "target", {}, 10ms).status();
  EXPECT_EQ(late.code(), Code::deadlineExceeded);
  EXPECT_THAT(late.message(), HasSubstr("\"target\""));
  release.set_value();
  EXPECT_EQ(opened.get(), "plain");
  EXPECT_EQ(nodes.open("target")->path(), "plain");
  EXPECT_EQ(*nodes.fake("plain").a.registered, 1);
}

TEST_F(NodeChoice, anotherTransportIsAskedForWhereTheBestOneFails) {
  FakePair nodes({nimble(), plain()});
  *nodes.fake("nimble").a.refusal = error(Code::exhausted, "8192 KiB may be locked");
  auto target = FakePair::allocate(*nodes.a, "target", kChoiceSize);
  EXPECT_EQ(nodes.open("target")->path(), "plain");
  EXPECT_EQ(*nodes.fake("plain").a.registered, 1);
}

TEST_F(NodeChoice, memoryThatCannotBeRegisteredIsAReasonAndNoFailure) {
  FakePair nodes({nimble(), plain()});
  *nodes.fake("nimble").a.refusal = error(Code::exhausted, "8192 KiB may be locked");
  auto target = FakePair::allocate(*nodes.a, "target", kChoiceSize);
  testing::internal::CaptureStderr();
  EXPECT_EQ(nodes.open("target")->path(), "plain");
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("8192 KiB may be locked"));
  EXPECT_EQ(nodes.used(8), "plain");
  EXPECT_THAT(nodes.reason("nimble"), HasSubstr("8192 KiB may be locked"));
  Status none = nodes.b->open(nodes.toA, "target", {"nimble"}, kDefaultTimeout).status();
  EXPECT_EQ(none.code(), Code::unsupported);
  EXPECT_THAT(none.message(), HasSubstr("nimble: 8192 KiB may be locked"));

  *nodes.fake("nimble").a.refusal = Status();
  auto another = FakePair::allocate(*nodes.a, "another", kChoiceSize);
  EXPECT_EQ(nodes.open("another")->path(), "nimble");
  EXPECT_THAT(nodes.reason("nimble"), Not(HasSubstr("locked"))) << "it works again";
}

TEST_F(NodeChoice, ofTwoTransportsEachServesTheSizesThatItIsQuickerFor) {
  OpenedPair nodes({wide(), nimble()});
  const auto& [target, local, remote] = nodes.memory;
  EXPECT_EQ(remote->path(), "nimble up to 65536 bytes, wide");
  EXPECT_EQ(remote->transport(), "nimble");
  EXPECT_EQ(carrier(remote, local, {{0, 0, kSmall}}), "nimble");
  EXPECT_EQ(carrier(remote, local, {{0, 0, kLarge}}), "wide");
  EXPECT_EQ(carrier(remote, local, {{0, 0, kLarge}}, OpKind::get), "wide");
  for (size_t size : {size_t{1}, kSmall, size_t{65536}, size_t{65537}, kLarge}) {
    EXPECT_EQ(nodes.used(size), carrier(remote, local, {{0, 0, size}})) << size;
  }
  sayHello(*local);
  EXPECT_TRUE(put(*remote, *local, kLarge).ok());
  EXPECT_EQ(read(*target), "hello");
}

TEST_F(NodeChoice, aBatchTakesThePathOfItsTypicalPiece) {
  OpenedPair nodes({nimble(), wide()});
  const auto& [target, local, remote] = nodes.memory;
  std::vector<Block> small(kChoiceSize / kSmall);
  for (size_t i = 0; i < small.size(); ++i) small[i] = {i * kSmall, i * kSmall, kSmall};
  EXPECT_EQ(carrier(remote, local, small), "nimble") << "as much as two large ones in all";
  EXPECT_EQ(carrier(remote, local, {{0, 0, kLarge}, {kLarge, kLarge, kLarge}}), "wide");
}

TEST_F(NodeChoice, onlyOnePathIsOpenedWhereNoOtherWins) {
  FakePair nodes({nimble(), plain()});
  auto target = FakePair::allocate(*nodes.a, "target", kChoiceSize);
  EXPECT_EQ(nodes.open("target")->path(), "nimble");
  EXPECT_TRUE(nodes.toA->paths().of("plain").used.empty());
}

TEST_F(NodeChoice, measuredTimesDecideWhereThereAreSome) {
  measured({{"nimble", DeviceKind::cpu, "put", 8, 9000},
            {"wide", DeviceKind::cpu, "put", 8, 100},
            {"nimble", DeviceKind::cpu, "put", kChoiceSize, 1000},
            {"wide", DeviceKind::cpu, "put", kChoiceSize, 90000}});
  OpenedPair nodes({nimble(), wide()});
  const auto& [target, local, remote] = nodes.memory;
  EXPECT_EQ(carrier(remote, local, {{0, 0, kSmall}}), "wide");
  EXPECT_EQ(carrier(remote, local, {{0, 0, kChoiceSize}}), "nimble");
  EXPECT_EQ(nodes.used(kSmall), "wide");
  EXPECT_EQ(nodes.used(kChoiceSize), "nimble");
  EXPECT_EQ(carrier(remote, local, {{0, 0, kSmall}}, OpKind::get), "nimble")
      << "of gets only typical times are known";
  EXPECT_THAT(remote->path(), HasSubstr("put: wide up to "));
  EXPECT_THAT(remote->path(), HasSubstr("; get: nimble up to "));
}

TEST_F(NodeChoice, measuredTimesOfOnePathAreNotComparedWithTypicalOnesOfAnother) {
  measured(
      {{"wide", DeviceKind::cpu, "put", 8, 1}, {"wide", DeviceKind::cpu, "put", kChoiceSize, 2}});
  FakePair nodes({nimble(), wide()});
  auto target = FakePair::allocate(*nodes.a, "target", kChoiceSize);
  EXPECT_EQ(nodes.open("target")->path(), "nimble up to 65536 bytes, wide");
}

TEST_F(NodeChoice, aFileThatNobodyNamedDecidesNothing) {
  measured({{"nimble", DeviceKind::cpu, "put", 8, 9000}, {"wide", DeviceKind::cpu, "put", 8, 1}});
  const std::string home = testing::TempDir() + "node_choice_home";
  const std::string cache = home + "/.cache/hmc";
  std::filesystem::create_directories(cache);
  for (const char* name : {"/figures", "/measurements"})
    std::filesystem::copy_file(file_, cache + name,
                               std::filesystem::copy_options::overwrite_existing);
  unsetenv("HMC_MEASUREMENTS");
  const std::string before = std::getenv("HOME") ? std::getenv("HOME") : "/";
  setenv("HOME", home.c_str(), 1);
  FakePair nodes({nimble(), wide()});
  setenv("HOME", before.c_str(), 1);
  std::filesystem::remove_all(home);
  auto target = FakePair::allocate(*nodes.a, "target", kChoiceSize);
  EXPECT_EQ(nodes.open("target")->path(), "nimble up to 65536 bytes, wide");
}

TEST_F(NodeChoice, aPathThatFailsSaysSoAndLeavesTheOtherInItsPlace) {
  OpenedPair nodes({nimble(), wide()});
  const auto& [target, local, remote] = nodes.memory;
  nodes.fake("wide").faults->die(error(Code::disconnected, "the wide road is closed"));
  EXPECT_TRUE(put(*remote, *local, kSmall).ok()) << "the other path goes on";
  Status failed = put(*remote, *local, kLarge);
  EXPECT_EQ(failed.code(), Code::disconnected);
  EXPECT_THAT(failed.message(), HasSubstr("the wide road is closed"));
  sayHello(*local);
  EXPECT_TRUE(put(*remote, *local, kLarge).ok()) << "the next one takes the path that is left";
  EXPECT_EQ(read(*target), "hello");
  EXPECT_EQ(carrier(remote, local, {{0, 0, kLarge}}), "nimble");

  nodes.fake("nimble").faults->die(error(Code::disconnected, "and so is the other"));
  EXPECT_EQ(put(*remote, *local, kSmall).code(), Code::disconnected);
  for (size_t size : {kSmall, kLarge})
    EXPECT_EQ(put(*remote, *local, size).code(), Code::disconnected) << size;
}

TEST_F(NodeChoice, aBatchOverAFailedPathMovesOverTheNextTime) {
  OpenedPair nodes({nimble(), wide()});
  const auto& [target, local, remote] = nodes.memory;
  nodes.fake("wide").faults->die(error(Code::disconnected, "the wide road is closed"));
  Ticket ticket =
      must(RemoteMapping::start(remote, OpKind::put, local, std::vector<Block>{{0, 0, kLarge}}));
  EXPECT_EQ(ticket.wait().code(), Code::disconnected);
  EXPECT_EQ(carrier(remote, local, {{0, 0, kLarge}}), "nimble");
}

TEST_F(NodeChoice, localMemoryThatOnePathCannotUseTakesTheOther) {
  FakePair nodes({nimble(), wide()});
  auto target = FakePair::allocate(*nodes.a, "target", kChoiceSize);
  *nodes.fake("wide").b.refusal = error(Code::exhausted, "8192 KiB may be locked");
  auto local = FakePair::allocate(*nodes.b, "local", kChoiceSize);
  auto remote = nodes.open("target");
  EXPECT_EQ(remote->path(), "nimble up to 65536 bytes, wide");
  EXPECT_EQ(carrier(remote, local, {{0, 0, kLarge}}), "nimble");
}

TEST_F(NodeChoice, localMemoryThatTheOnlyPathCannotUseIsStaged) {
  FakeTransport strict = plain();
  strict.b.mostRegistered = StagePool::kSlotSize;
  FakePair nodes({strict});
  constexpr size_t kMore = 3 * StagePool::kSlotSize + 5;
  auto target = FakePair::allocate(*nodes.a, "target", kMore);
  auto local = FakePair::allocate(*nodes.b, "local", kMore);
  EXPECT_FALSE(local->through(0).registration);
  std::memset(local->host(), 7, kMore);
  auto remote = nodes.open("target");
  ASSERT_TRUE(put(*remote, *local, kMore).ok());
  EXPECT_EQ(0, std::memcmp(target->host(), local->host(), kMore));
  std::memset(target->host(), 9, kMore);
  ASSERT_TRUE(remote->run(OpKind::get, *local, 0, 0, kMore, kDefaultTimeout).ok());
  EXPECT_EQ(0, std::memcmp(target->host(), local->host(), kMore));
}

TEST_F(NodeChoice, aNodeWithoutAnyTransportSaysSo) {
  FakePair nodes({});
  auto target = FakePair::allocate(*nodes.a, "target", kChoiceSize);
  Status none = nodes.b->open(nodes.toA, "target", {}, kDefaultTimeout).status();
  EXPECT_EQ(none.code(), Code::unsupported);
  EXPECT_THAT(none.message(), HasSubstr("region \"target\""));
  EXPECT_THAT(none.message(), HasSubstr("b has no transport"));
}

TEST_F(NodeChoice, transportsThatCannotRunHereAreAmongTheReasons) {
  FakePair nodes({}, {}, std::chrono::seconds(10), {{"verbs", error(Code::notFound, "no NIC")}});
  auto target = FakePair::allocate(*nodes.a, "target", kChoiceSize);
  Status none = nodes.b->open(nodes.toA, "target", {}, kDefaultTimeout).status();
  EXPECT_THAT(none.message(), HasSubstr("(verbs: no NIC)"));
}

TEST_F(NodeChoice, aRegionThatThePeerDoesNotHaveIsNamed) {
  FakePair nodes({plain()});
  Status none = nodes.b->open(nodes.toA, "nowhere", {}, kDefaultTimeout).status();
  EXPECT_EQ(none.code(), Code::notFound);
  EXPECT_THAT(none.message(), HasSubstr("nowhere"));
}

}  // namespace
}  // namespace hmc
