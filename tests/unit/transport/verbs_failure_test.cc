#include <gmock/gmock.h>

#include <vector>

#include "fakes/fake_libibverbs.h"
#include "fakes/link_options.h"
#include "transport/verbs/verbs.h"

// Failures that no device can be made to have, on the fake libibverbs.
namespace hmc::verbs {
namespace {

using testing::HasSubstr;

constexpr std::chrono::seconds kFailurePatience{30};
constexpr std::chrono::milliseconds kLease{300};

class VerbsFailure : public testing::Test {
 protected:
  void SetUp() override {
    auto transport = create();
    if (!test::fakeVerbs<void()>("fakeDeviceFails"))
      GTEST_SKIP() << "not the fake libibverbs: set LD_LIBRARY_PATH to its folder";
    a_ = *std::move(transport);
    b_ = *create();
    theirs_ = *b_->openLink(test::linkOptions(false, kLease));
    ours_ = *a_->openLink(test::linkOptions(true, kLease));
    ASSERT_TRUE(theirs_->connect(ours_->address()).ok());
    ASSERT_TRUE(ours_->connect(theirs_->address()).ok());
    local_ = *a_->registerRegion({from_.data(), from_.size(), Device{}}, Access::readWrite);
    target_ = *b_->registerRegion({to_.data(), to_.size(), Device{}}, Access::readWrite);
    auto remote = ours_->importKey(target_->key(), kFailurePatience, nullptr);
    ASSERT_TRUE(remote.ok()) << remote.status().toString();
    remote_ = *std::move(remote);
  }
  Status put() {
    Completion completion(1);
    Op op{OpKind::put, from_.data(), local_.get(), remote_.get(), 0, from_.size(), &completion};
    const Deadline deadline(kFailurePatience);
    bool posted = false;
    while (!completion.done() && !deadline.passed()) {
      posted = posted || ours_->post({&op, 1}) == 1;
      a_->progress(std::chrono::milliseconds(10));
    }
    EXPECT_TRUE(completion.done());
    return completion.status();
  }

  std::vector<char> from_ = std::vector<char>(1000, 'x');
  std::vector<char> to_ = std::vector<char>(1000, 'y');
  std::unique_ptr<Transport> a_, b_;
  std::unique_ptr<Registration> local_, target_;
  std::unique_ptr<Link> theirs_, ours_;
  std::unique_ptr<RemoteMemory> remote_;
};

TEST_F(VerbsFailure, ofTheDeviceEndsItsLinksAndSaysSo) {
  ASSERT_TRUE(put().ok());
  EXPECT_EQ(from_, to_);
  test::fakeVerbs<void()>("fakeDeviceFails")();
  Status status;
  for (const Deadline deadline(kFailurePatience); status.ok() && !deadline.passed();)
    status = put();
  EXPECT_EQ(status.code(), Code::disconnected);
  EXPECT_THAT(status.message(),
              testing::AnyOf(HasSubstr("fake0 has failed"), HasSubstr("the peer has closed")));
}

// The pointer is the host's; what we say of it makes the transport treat it as a device's.
TEST_F(VerbsFailure, ofTheReadAfterAPutPostsThePutAgain) {
  auto device =
      b_->registerRegion({to_.data(), to_.size(), {DeviceKind::cuda, 0}}, Access::readWrite);
  ASSERT_TRUE(device.ok()) << device.status().toString();
  remote_ = *ours_->importKey((*device)->key(), kFailurePatience, nullptr);
  const int before = test::fakeVerbs<int()>("fakeReads")();
  test::fakeVerbs<void(int)>("fakeBreaksAtReads")(2);
  Status status = put();
  EXPECT_TRUE(status.ok()) << status.toString();
  EXPECT_EQ(test::fakeVerbs<int()>("fakeReads")(), before + 1) << "nobody knew that it had arrived";
  EXPECT_EQ(from_, to_);
  EXPECT_EQ(a_->counters().retries, 2u);
  remote_.reset();
}

// What the NIC has refused it will never report: the operation must end all the same.
TEST_F(VerbsFailure, ofTheNicToTakeWorkEndsTheLinkWithinTheLease) {
  test::fakeVerbs<void(int)>("fakeRefuses")(1);
  Status status = put();
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(status.message(), HasSubstr("posting to a queue pair of fake0:1"));
  EXPECT_EQ(put().message(), status.message()) << "and stays closed";
  EXPECT_EQ(to_, std::vector<char>(1000, 'y'));
}

}  // namespace
}  // namespace hmc::verbs
