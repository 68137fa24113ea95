#include "fakes/faulty_transport.h"

#include <gtest/gtest.h>

#include "fakes/inprocess_transport.h"
#include "fakes/linked_test.h"

namespace hmc::fakes {
namespace {

const Status kBroken(Code::failed, "broken by the test");

class FaultyTransport : public test::LinkedTest<Transport> {
 protected:
  void SetUp() override {
    auto wire = makeInProcessWire();
    a_ = makeFaulty(*createInProcess(wire), faults_);
    b_ = *createInProcess(wire);
    fromHost_ = *a_->registerRegion({from_.data(), from_.size(), Device{}}, Access::readWrite);
    target_ = *b_->registerRegion({to_.data(), to_.size(), Device{}}, Access::readWrite);
    back_ = *b_->openLink({});
    link_ = *a_->openLink({});
    ASSERT_TRUE(link_->connect(back_->address()).ok());
    memory_ = *link_->importKey(target_->key(), std::chrono::seconds(30), nullptr);
  }
  Op put(Completion& completion) {
    return {OpKind::put, from_.data(), fromHost_.get(), memory_.get(), 0, 10, &completion};
  }
  // Calls of progress() until it is done; 1000 when it never is.
  int callsUntilDone(const Completion& completion) {
    int calls = 0;
    for (; !completion.done() && calls < 1000; ++calls) a_->progress(Deadline::now());
    return calls;
  }

  std::shared_ptr<Faults> faults_ = std::make_shared<Faults>();
  std::string from_ = std::string(100, 'f');
  std::string to_ = std::string(100, '.');
};

TEST_F(FaultyTransport, withoutFaultsIsTheTransportInside) {
  Completion completion(1);
  Op op = put(completion);
  ASSERT_EQ(link_->post({&op, 1}), 1u);
  EXPECT_EQ(callsUntilDone(completion), 1);
  EXPECT_TRUE(completion.status().ok());
  EXPECT_EQ(to_.substr(0, 11), "ffffffffff.");
}

TEST_F(FaultyTransport, reportsEndsLate) {
  faults_->delay = 7;
  Completion completion(1);
  Op op = put(completion);
  ASSERT_EQ(link_->post({&op, 1}), 1u);
  EXPECT_EQ(callsUntilDone(completion), 8);
}

TEST_F(FaultyTransport, takesOnlySoManyOperationsPerPost) {
  faults_->mostPerPost = 2;
  Completion completion(3);
  Op ops[] = {put(completion), put(completion), put(completion)};
  EXPECT_EQ(link_->post(ops), 2u);
  EXPECT_EQ(link_->post({ops + 2, 1}), 1u);
  callsUntilDone(completion);
  EXPECT_TRUE(completion.done());
}

TEST_F(FaultyTransport, failsTheChosenOperation) {
  faults_->failNth(2, kBroken);
  Completion first(1), second(1), third(1);
  Op ops[] = {put(first), put(second), put(third)};
  ASSERT_EQ(link_->post(ops), 3u);
  callsUntilDone(first);
  callsUntilDone(second);
  callsUntilDone(third);
  EXPECT_TRUE(first.status().ok());
  EXPECT_EQ(second.status().message(), kBroken.message());
  EXPECT_TRUE(third.status().ok());
}

TEST_F(FaultyTransport, holdsEverythingBackUntilReleased) {
  faults_->stalled = true;
  Completion completion(1);
  Op op = put(completion);
  ASSERT_EQ(link_->post({&op, 1}), 1u);
  EXPECT_EQ(callsUntilDone(completion), 1000);
  faults_->stalled = false;
  EXPECT_LT(callsUntilDone(completion), 1000);
  EXPECT_TRUE(completion.status().ok());
}

TEST_F(FaultyTransport, aStalledLinkCanBeClosedAndDestroyed) {
  faults_->stalled = true;
  Completion closed(1), destroyed(1);
  Op op = put(closed);
  ASSERT_EQ(link_->post({&op, 1}), 1u);
  link_->close(kBroken);
  EXPECT_LT(callsUntilDone(closed), 1000);
  auto other = *a_->openLink({});
  ASSERT_TRUE(other->connect(back_->address()).ok());
  op = put(destroyed);
  ASSERT_EQ(other->post({&op, 1}), 1u);
  other.reset();
  EXPECT_TRUE(destroyed.done());
}

TEST_F(FaultyTransport, diesWithEverythingPendingAndToCome) {
  faults_->stalled = true;
  Completion pending(1), later(1);
  Op op = put(pending);
  ASSERT_EQ(link_->post({&op, 1}), 1u);
  faults_->die(Status(Code::disconnected, "the peer is gone"));
  EXPECT_LT(callsUntilDone(pending), 1000);
  EXPECT_EQ(pending.status().code(), Code::disconnected);
  op = put(later);
  EXPECT_EQ(link_->post({&op, 1}), 1u);
  callsUntilDone(later);
  EXPECT_EQ(later.status().code(), Code::disconnected);
}

}  // namespace
}  // namespace hmc::fakes
