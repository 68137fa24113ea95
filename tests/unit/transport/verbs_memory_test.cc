#include <fcntl.h>
#include <gmock/gmock.h>

#include "fakes/fake_libibverbs.h"
#include "memory/backends.h"
#include "transport/verbs/memory.h"

namespace hmc::verbs {
namespace {

using test::FakeRegistering;
using testing::HasSubstr;

class VerbsMemory : public testing::Test {
 protected:
  void SetUp() override {
    library_ = *Library::load();
    auto* registering = test::fakeVerbs<FakeRegistering*()>("fakeRegistering");
    if (!registering) GTEST_SKIP() << "not the fake libibverbs: set LD_LIBRARY_PATH to its folder";
    fake_ = registering();
    *fake_ = FakeRegistering();
  }
  void open(int count = 1) {
    nics_ = std::make_unique<Nics>();
    for (int i = 0; i < count; ++i) {
      Port port;
      port.device = "fake" + std::to_string(i);
      nics_->push_back(*Nic::open(library_, port));
    }
    fake_->registered = fake_->deregistered = 0;
  }
  static Region hostRegion() {
    static char bytes[4096];
    return {bytes, sizeof(bytes), Device{}};
  }
  // A page of the fake accelerator's memory, which hands out a descriptor as a dma-buf would be.
  Region deviceRegion() {
    auto backend = findBackend(kGpu);
    EXPECT_TRUE(backend.ok()) << backend.status().toString();
    backend_ = *backend;
    device_ = *backend_->allocate(0, 4096);
    return device_;
  }
  void TearDown() override {
    if (!backend_) return;
    EXPECT_TRUE(backend_->release(device_.ptr).ok());
  }
  Result<std::unique_ptr<Registration>> add(const Region& region, Access access) {
    open();
    table_ = std::make_unique<MemoryTable>(*nics_);
    return table_->add(region, access);
  }

  static constexpr Device kGpu{DeviceKind::cuda, 0};
  std::shared_ptr<const Library> library_;
  FakeRegistering* fake_ = nullptr;
  std::unique_ptr<Nics> nics_;
  std::unique_ptr<MemoryTable> table_;
  Backend* backend_ = nullptr;
  Region device_;
};

TEST_F(VerbsMemory, isPinnedOnceForTheSameRangeAndAccess) {
  open();
  MemoryTable table(*nics_);
  auto first = table.add(hostRegion(), Access::readWrite);
  auto second = table.add(hostRegion(), Access::readWrite);
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ(fake_->registered, 1);
  EXPECT_EQ((*first)->key(), (*second)->key());
  auto other = table.add(hostRegion(), Access::read);
  EXPECT_EQ(fake_->registered, 2) << "who may only read must not get a key to write";
  auto part = table.add(hostRegion().slice(0, 100), Access::readWrite);
  EXPECT_EQ(fake_->registered, 3) << "a key to a part must not open the whole";
  first->reset();
  EXPECT_EQ(fake_->deregistered, 0) << "somebody still uses it";
  second->reset();
  EXPECT_EQ(fake_->deregistered, 1);
  auto again = table.add(hostRegion(), Access::readWrite);
  EXPECT_EQ(fake_->registered, 4);
}

TEST_F(VerbsMemory, isKnownToEveryNic) {
  open(2);
  MemoryTable table(*nics_);
  auto registration = table.add(hostRegion(), Access::readWrite);
  ASSERT_TRUE(registration.ok());
  EXPECT_EQ(fake_->registered, 2);
  auto remote = VerbsRemote::decode((*registration)->key(), 2, {});
  ASSERT_TRUE(remote.ok()) << remote.status().toString();
  const auto& verbsRemote = static_cast<const VerbsRemote&>(**remote);
  EXPECT_NE(verbsRemote.rkey(0), verbsRemote.rkey(1));
  EXPECT_TRUE(verbsRemote.visibleWhenAcknowledged());
  const auto& ours = static_cast<const VerbsRegistration&>(**registration);
  EXPECT_NE(ours.lkey(0), verbsRemote.rkey(0)) << "what peers get is the remote key";
  EXPECT_FALSE(VerbsRemote::decode((*registration)->key(), 1, {}).ok());
}

TEST_F(VerbsMemory, thatNobodyMayWriteIsRegisteredForReading) {
  fake_->hostReadOnly = true;
  EXPECT_TRUE(add(hostRegion(), Access::read).ok());
  EXPECT_EQ(fake_->lastAccess, IBV_ACCESS_REMOTE_READ);
  EXPECT_FALSE(add(hostRegion(), Access::readWrite).ok());
}

TEST_F(VerbsMemory, thatCannotBeLockedNamesTheLimitAndTheFix) {
  fake_->hostError = ENOMEM;
  Status status = add(hostRegion(), Access::readWrite).status();
  EXPECT_EQ(status.code(), Code::exhausted);
  EXPECT_THAT(status.message(), HasSubstr("4096 bytes"));
  EXPECT_THAT(status.message(), HasSubstr("ulimit -l unlimited"));
}

TEST_F(VerbsMemory, ofADeviceGoesByDmabufFirst) {
  auto registration = add(deviceRegion().slice(100, 3000), Access::readWrite);
  ASSERT_TRUE(registration.ok()) << registration.status().toString();
  EXPECT_EQ(fake_->lastDmabuf.offset, 100u);
  EXPECT_EQ(fake_->lastDmabuf.length, 3000u);
  EXPECT_EQ(*table_->tryDevice(kGpu), "dma-buf");
  auto remote = VerbsRemote::decode((*registration)->key(), 1, {});
  EXPECT_FALSE(static_cast<const VerbsRemote&>(**remote).visibleWhenAcknowledged());
}

TEST_F(VerbsMemory, ofADeviceKeepsNoDescriptorOpen) {
  auto registration = add(deviceRegion(), Access::readWrite);
  ASSERT_TRUE(registration.ok()) << registration.status().toString();
  EXPECT_EQ(fcntl(fake_->lastDmabuf.fd, F_GETFD), -1) << "the NIC holds the memory itself";
  fake_->dmabufError = EINVAL;
  EXPECT_FALSE(table_->add(device_.slice(0, 10), Access::readWrite).ok());
  EXPECT_EQ(fcntl(fake_->lastDmabuf.fd, F_GETFD), -1) << "also when it could not be registered";
  registration->reset();
  EXPECT_EQ(fake_->deregistered, 1);
}

TEST_F(VerbsMemory, ofADeviceGoesAsPeerMemoryWhereDmabufDoesNot) {
  fake_->dmabufError = EOPNOTSUPP;
  fake_->peerMemory = true;
  EXPECT_TRUE(add(deviceRegion(), Access::readWrite).ok());
  EXPECT_EQ(*table_->tryDevice(kGpu), "peer memory");
}

TEST_F(VerbsMemory, ofADeviceNeedsNoNewLibrary) {
  std::const_pointer_cast<Library>(library_)->ibv_reg_dmabuf_mr = nullptr;
  fake_->peerMemory = true;
  EXPECT_TRUE(add(deviceRegion(), Access::readWrite).ok());
  EXPECT_EQ(*table_->tryDevice(kGpu), "peer memory");
  fake_->peerMemory = false;
  Status status = add(device_, Access::readWrite).status();
  EXPECT_THAT(status.message(), HasSubstr("older than rdma-core 34"));
  EXPECT_THAT(status.message(), HasSubstr("install a newer libibverbs1"));
}

TEST_F(VerbsMemory, ofADeviceThatNothingReachesSaysWhyForEachPathWithTheFix) {
  fake_->dmabufError = EOPNOTSUPP;
  Status status = add(deviceRegion(), Access::readWrite).status();
  EXPECT_EQ(status.code(), Code::unsupported);
  EXPECT_THAT(status.message(), HasSubstr("dma-buf: the driver of fake0:1 takes none"));
  EXPECT_THAT(status.message(), HasSubstr("needs Linux 5.12"));
  EXPECT_THAT(status.message(), HasSubstr("Peer memory: "));
  EXPECT_THAT(status.message(), HasSubstr("modprobe nvidia-peermem"));
  EXPECT_FALSE(table_->tryDevice(kGpu).ok());
}

TEST_F(VerbsMemory, ofADeviceWithASmallPciWindowNamesIt) {
  fake_->dmabufError = ENOMEM;
  Status status = add(deviceRegion(), Access::readWrite).status();
  EXPECT_EQ(status.code(), Code::unsupported) << "so that it is staged";
  EXPECT_THAT(status.message(), HasSubstr("Resizable BAR"));
}

TEST_F(VerbsMemory, thatIsNoneIsRefused) {
  EXPECT_EQ(add(Region{nullptr, 10, Device{}}, Access::read).status().code(),
            Code::invalidArgument);
  EXPECT_EQ(add(hostRegion().slice(0, 0), Access::read).status().code(), Code::invalidArgument);
}

}  // namespace
}  // namespace hmc::verbs
