#include "api/pipeline.h"

#include <gmock/gmock.h>

#include <mutex>
#include <vector>

#include "fakes/pattern.h"
#include "unit/node/fake_pair.h"

namespace hmc {
namespace {

using testing::Each;
using testing::HasSubstr;

constexpr size_t kPipelineSize = 100000;

// How many transfers are under way when another starts.
class UnderWay {
 public:
  TraceHook hook() { return {&hear, this}; }
  std::vector<size_t> atEachStart() {
    std::lock_guard lock(mutex_);
    return atStart_;
  }

 private:
  static void hear(void* self, const TraceEvent& event) {
    auto& us = *static_cast<UnderWay*>(self);
    std::lock_guard lock(us.mutex_);
    if (event.step == TraceEvent::Step::start) us.atStart_.push_back(us.now_++);
    if (event.step == TraceEvent::Step::end) --us.now_;
  }

  std::mutex mutex_;
  size_t now_ = 0;               // guarded by mutex_
  std::vector<size_t> atStart_;  // guarded by mutex_
};

// Over a transport that ends one operation at a time.
class Pipeline : public testing::Test {
 protected:
  static void write(const LocalMemory& memory, const std::string& bytes) {
    bytes.copy(memory.host(), bytes.size());
  }
  static std::string read(const LocalMemory& memory) {
    return {memory.host(), memory.region().size};
  }
  Status run(OpKind kind, const Block& block, size_t chunk, size_t most) {
    return runPipeline(kind, local, remote, block, {chunk, most}, kDefaultTimeout);
  }
  std::vector<size_t> starts(size_t chunk, size_t most) {
    EXPECT_TRUE(run(OpKind::put, {0, 0, kPipelineSize}, chunk, most).ok());
    return underWay.atEachStart();
  }

  UnderWay underWay;
  FakePair pair{{FakeTransport("fake")}, {}, std::chrono::seconds(1), {}, underWay.hook()};
  fakes::Faults& faults = *pair.fake("fake").faults;
  std::shared_ptr<LocalMemory> target = FakePair::allocate(*pair.a, "target", kPipelineSize);
  std::shared_ptr<LocalMemory> local = FakePair::allocate(*pair.b, "", kPipelineSize);
  std::shared_ptr<RemoteMapping> remote = pair.open("target");
};

TEST_F(Pipeline, startsAChunkAsSoonAsOneHasEndedAndNeverOneTooMany) {
  std::vector<size_t> counts = starts(5000, 4);
  ASSERT_EQ(counts.size(), 20U);
  EXPECT_THAT(std::vector(counts.begin(), counts.begin() + 4), testing::ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(std::vector(counts.begin() + 4, counts.end()), Each(3U));
}

TEST_F(Pipeline, ofOneAtATimeHasOneUnderWay) {
  EXPECT_THAT(starts(9999, 1), testing::AllOf(testing::SizeIs(11), Each(0U)));
}

TEST_F(Pipeline, hasChunksOfFourMebibytesUnlessToldOtherwise) {
  constexpr size_t kLarge = (size_t{4} << 20) + 1;
  auto there = FakePair::allocate(*pair.a, "large", kLarge);
  auto here = FakePair::allocate(*pair.b, "", kLarge);
  EXPECT_TRUE(
      runPipeline(OpKind::put, here, pair.open("large"), {0, 0, kLarge}, {0, 8}, kDefaultTimeout)
          .ok());
  EXPECT_EQ(underWay.atEachStart().size(), 2U);
}

TEST_F(Pipeline, movesEveryByteToItsPlaceBothWays) {
  for (size_t chunk :
       {size_t{1}, size_t{7}, size_t{4096}, kPipelineSize - 1, kPipelineSize, kPipelineSize + 1}) {
    const size_t size = std::min(kPipelineSize, 1000 * chunk);
    const std::string bytes = test::pattern(kPipelineSize, chunk);
    write(*local, bytes);
    ASSERT_TRUE(run(OpKind::put, {0, kPipelineSize - size, size}, chunk, 3).ok()) << chunk;
    EXPECT_TRUE(read(*target).substr(kPipelineSize - size) == bytes.substr(0, size)) << chunk;
    write(*target, test::pattern(kPipelineSize, chunk + 1));
    ASSERT_TRUE(run(OpKind::get, {kPipelineSize - size, 0, size}, chunk, 3).ok()) << chunk;
    EXPECT_TRUE(read(*local).substr(kPipelineSize - size) == read(*target).substr(0, size))
        << chunk;
  }
}

TEST_F(Pipeline, startsNoFurtherChunkAfterOneHasFailed) {
  faults.failNth(3, Status(Code::failed, "the third is lost"));
  const Status status = run(OpKind::put, {0, 0, kPipelineSize}, 1000, 2);
  EXPECT_EQ(status.code(), Code::failed);
  EXPECT_THAT(status.message(), HasSubstr("the third is lost"));
  EXPECT_LE(underWay.atEachStart().size(), 4U);
}

TEST_F(Pipeline, endsWithItsPeer) {
  faults.stalled = true;
  std::thread killer([&] {
    while (underWay.atEachStart().size() < 8) std::this_thread::yield();
    faults.die(Status(Code::disconnected, "the peer is gone"));
  });
  EXPECT_EQ(run(OpKind::get, {0, 0, kPipelineSize}, 1000, 8).code(), Code::disconnected);
  killer.join();
  // What had arrived before the end counts as arrived, and as many more were started in its place.
  EXPECT_LE(underWay.atEachStart().size(), 16U);
}

TEST_F(Pipeline, thatIsLateIsCancelled) {
  faults.stalled = true;
  const Status status = runPipeline(OpKind::put, local, remote, {0, 0, kPipelineSize}, {1000, 4},
                                    std::chrono::milliseconds(50));
  EXPECT_EQ(status.code(), Code::deadlineExceeded);
  EXPECT_EQ(underWay.atEachStart().size(), 4U);
}

TEST_F(Pipeline, refusesARangeOrAWindowBeforeAnythingMoves) {
  EXPECT_EQ(run(OpKind::put, {1, 0, kPipelineSize}, 1000, 4).code(), Code::outOfRange);
  EXPECT_EQ(run(OpKind::get, {0, 1, kPipelineSize}, 1000, 4).code(), Code::outOfRange);
  EXPECT_EQ(run(OpKind::put, {SIZE_MAX, 0, 2}, 1, 4).code(), Code::outOfRange);
  const Status none = run(OpKind::put, {0, 0, kPipelineSize}, 1000, 0);
  EXPECT_EQ(none.code(), Code::invalidArgument);
  EXPECT_THAT(none.message(), HasSubstr("max_inflight is 0"));
  EXPECT_TRUE(run(OpKind::put, {kPipelineSize, kPipelineSize, 0}, 1000, 4).ok());
  EXPECT_TRUE(underWay.atEachStart().empty());
}

}  // namespace
}  // namespace hmc
