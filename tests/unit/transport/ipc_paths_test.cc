#include <sys/mman.h>

#include "transport/ipc/key.h"
#include "transport/ipc/ring.h"
#include "unit/transport/ipc_fixture.h"

// Which path leads to which memory, and that it moves the right bytes.
namespace hmc::ipc {

namespace {

// Puts a text at `offset` through every size of machinery and reads it back.
void expectReached(IpcPair& pair, const Region& memory, PathKind kind) {
  auto registration = must(pair.target->registerRegion(memory, Access::readWrite));
  auto remote = pair.import(*registration);
  EXPECT_EQ(pair.pathOf(*remote), kind);
  std::string text = "some text that is longer than a word";
  auto local =
      must(pair.origin->registerRegion(hostRegion(text.data(), text.size()), Access::readWrite));
  for (uint64_t offset : {uint64_t{0}, uint64_t{5}, memory.size - text.size()}) {
    std::memset(memory.at(offset), 0, text.size());
    Status put = pair.run(OpKind::put, *local, *remote, offset, text.size());
    ASSERT_TRUE(put.ok()) << put.toString();
    EXPECT_EQ(std::string(memory.at(offset), text.size()), text);
    std::memcpy(memory.at(offset), "TEXT", 4);
    Status get = pair.run(OpKind::get, *local, *remote, offset, 4);
    ASSERT_TRUE(get.ok()) << get.toString();
    EXPECT_EQ(text.substr(0, 4), "TEXT");
    text.replace(0, 4, "some");
  }
}

}  // namespace

TEST(IpcPaths, memoryOfOursIsMapped) {
  IpcPair pair;
  Allocation memory(100000);
  expectReached(pair, memory.region, PathKind::mappedHost);
}

TEST(IpcPaths, aPartOfAnAllocationIsMapped) {
  IpcPair pair;
  Allocation memory(100000);
  expectReached(pair, memory.region.slice(12345, 6789), PathKind::mappedHost);
}

TEST(IpcPaths, memoryOfTheHeapGoesThroughTheKernel) {
  IpcPair pair;
  std::vector<char> memory(10 << 20);
  expectReached(pair, hostRegion(memory.data() + 1234567, 1000), PathKind::processVm);
}

TEST(IpcPaths, memoryOfTheStackGoesThroughTheKernel) {
  IpcPair pair;
  char memory[1000];
  expectReached(pair, hostRegion(memory, sizeof(memory)), PathKind::processVm);
}

TEST(IpcPaths, theRingRemainsWhenTheOriginMayNotUseTheOthers) {
  IpcPair pair(kRingOnly);
  std::vector<char> memory(1000000);
  expectReached(pair, hostRegion(memory.data(), memory.size()), PathKind::ring);
}

TEST(IpcPaths, theRingRemainsWhenTheTargetOffersNothingElse) {
  IpcPair pair({}, kRingOnly);
  Allocation memory(1000000);
  expectReached(pair, memory.region, PathKind::ring);
}

TEST(IpcPaths, memoryThatIsOnlyReadable) {
  for (IpcOptions options : {IpcOptions{}, kRingOnly}) {
    IpcPair pair(options, options);
    static const char kConstant[] = "cannot be written";
    auto registration = must(pair.target->registerRegion(
        hostRegion(const_cast<char*>(kConstant), sizeof(kConstant)), Access::read));
    auto remote = pair.import(*registration);
    EXPECT_EQ(remote->access, Access::read);
    char text[sizeof(kConstant)] = "";
    auto local =
        must(pair.origin->registerRegion(hostRegion(text, sizeof(text)), Access::readWrite));
    EXPECT_EQ(pair.run(OpKind::put, *local, *remote, 0, 4).code(), Code::permissionDenied);
    EXPECT_TRUE(pair.run(OpKind::get, *local, *remote, 0, sizeof(text)).ok());
    EXPECT_STREQ(text, kConstant);
  }
}

// Not only by our checks: a peer could leave them out.
TEST(IpcPaths, memoryThatIsOnlyReadableIsMappedSoAndCannotBeMadeWritable) {
  IpcPair pair;
  Allocation memory(4096);
  std::memset(memory.region.ptr, 'x', 4096);
  for (Access access : {Access::read, Access::readWrite}) {
    auto registration = must(pair.target->registerRegion(memory.region, access));
    auto remote = pair.import(*registration);
    ASSERT_EQ(pair.pathOf(*remote), PathKind::mappedHost);
    EXPECT_EQ(remote->mapped.data[100], 'x');
    EXPECT_EQ(mprotect(remote->mapped.data, 4096, PROT_READ | PROT_WRITE) == 0,
              access == Access::readWrite);
  }
}

TEST(IpcPaths, everySmallSizeArrivesAndNothingBeside) {
  IpcPair pair;
  Allocation memory(4096);
  auto registration = must(pair.target->registerRegion(memory.region, Access::readWrite));
  auto remote = pair.import(*registration);
  char text[100];
  auto local = must(pair.origin->registerRegion(hostRegion(text, sizeof(text)), Access::readWrite));
  for (size_t size = 1; size <= sizeof(text); ++size) {
    std::memset(text, static_cast<int>(size), sizeof(text));
    std::memset(memory.region.ptr, 0, 4096);
    ASSERT_TRUE(pair.run(OpKind::put, *local, *remote, 7, size).ok());
    EXPECT_EQ(*memory.region.at(6), 0);
    for (size_t i = 0; i < size; ++i) ASSERT_EQ(*memory.region.at(7 + i), static_cast<char>(size));
    EXPECT_EQ(*memory.region.at(7 + size), 0) << size;
    std::memset(text, 0, sizeof(text));
    ASSERT_TRUE(pair.run(OpKind::get, *local, *remote, 7, size).ok());
    EXPECT_EQ(text[size - 1], static_cast<char>(size));
    EXPECT_TRUE(size == sizeof(text) || text[size] == 0) << size;
  }
}

TEST(IpcPaths, oneBadOperationInABatchFailsAlone) {
  IpcPair pair;
  std::vector<char> memory(1000, 0);
  auto whole = must(
      pair.target->registerRegion(hostRegion(memory.data(), memory.size()), Access::readWrite));
  auto remote = pair.import(*whole);
  ASSERT_EQ(pair.pathOf(*remote), PathKind::processVm);
  std::vector<char> text(1000, 'x');
  auto local =
      must(pair.origin->registerRegion(hostRegion(text.data(), text.size()), Access::readWrite));
  Completion good(9);
  Completion bad(1);
  std::vector<Op> ops;
  for (size_t i = 0; i < 10; ++i) {
    ops.push_back({OpKind::put, &text[i], local.get(), remote.get(), i * 10, 10, &good});
  }
  // A hole in our own memory, which no check of ours can find.
  ops[4].local = reinterpret_cast<void*>(8);  // NOLINT
  ops[4].completion = &bad;
  EXPECT_EQ(pair.link->post(ops), ops.size());
  ASSERT_TRUE(good.done() && bad.done());
  EXPECT_TRUE(good.status().ok()) << good.status().toString();
  EXPECT_EQ(bad.status().code(), Code::failed);
  EXPECT_EQ(std::string(memory.data(), 100),
            std::string(40, 'x') + std::string(10, '\0') + std::string(50, 'x'));
}

TEST(IpcPaths, onlyAWayThatWasOfferedAndFailedMakesItASlowerOne) {
  std::vector<char> heap(1000);
  Allocation memory(1000);
  for (IpcOptions options : {IpcOptions{}, kRingOnly}) {
    IpcPair pair(options);
    for (const Region& region : {hostRegion(heap.data(), heap.size()), memory.region}) {
      auto registration = must(pair.target->registerRegion(region, Access::readWrite));
      auto remote = pair.link->importKey(registration->key(), kPatience, nullptr);
      if (!remote.ok()) continue;  // what is offered for mapping alone, to who may not map
      EXPECT_EQ((*remote)->slowerBecause(), "") << (*remote)->path();
    }
  }
}

// A link whose far end is the test, which describes memory as it likes.
class LyingOwner {
 public:
  explicit LyingOwner(const Description& lie) {
    const auto token = fds_->serve({"what both ends know", false}, [lie, this](Parcel request) {
      if (request.bytes.empty() || request.bytes[0] != 1) return copyOf("", {});
      std::vector<Fd> page;
      if (lie.page) page.push_back(must(page_.share()));
      return copyOf(encode(lie), page);
    });
    EXPECT_TRUE(link_->connect(encode(Address{fds_->name(), token})).ok());
  }
  Result<std::unique_ptr<RemoteMemory>> import() {
    return link_->importKey(encode(Key{std::string(kTokenSize, 'k')}), kPatience, nullptr);
  }

 private:
  std::unique_ptr<FdExchange> fds_ = must(FdExchange::create());
  std::unique_ptr<FdExchange> ours_ = must(FdExchange::create());
  const SharedBlock<ServicePage> page_ = must(SharedBlock<ServicePage>::create());
  std::unique_ptr<Transport> origin_ = must(create(*ours_));
  std::unique_ptr<Link> link_ = must(origin_->openLink(test::linkOptions(true)));
};

Description heapMemory(std::vector<char>& memory, const std::string& nonce) {
  Description what;
  what.access = Access::readWrite;
  what.size = memory.size();
  what.processVm = true;
  what.address = reinterpret_cast<uintptr_t>(memory.data());
  what.nonce = std::string(kNonceSize, 'n');
  what.nonceAddress = reinterpret_cast<uintptr_t>(nonce.data());
  return what;
}

TEST(IpcPaths, aProcessWithoutTheNonceIsNotTrusted) {
  std::vector<char> memory(1000);
  const std::string another(kNonceSize, 'x');
  LyingOwner owner(heapMemory(memory, another));
  const auto remote = owner.import();
  ASSERT_FALSE(remote.ok());
  EXPECT_NE(remote.status().message().find("is not the peer"), std::string::npos)
      << remote.status().toString();
}

TEST(IpcPaths, aWayThatWasOfferedAndFailedIsNamedWithItsFix) {
  std::vector<char> memory(1000);
  const std::string another(kNonceSize, 'x');
  Description what = heapMemory(memory, another);
  what.page = true;
  LyingOwner owner(what);
  const auto remote = must(owner.import());
  EXPECT_EQ(remote->path(), "ring");
  EXPECT_NE(remote->slowerBecause().find("process_vm: process"), std::string::npos)
      << remote->slowerBecause();
  EXPECT_NE(remote->slowerBecause().find("let the owner's Node allocate"), std::string::npos)
      << remote->slowerBecause();
  EXPECT_EQ(remote->slowerBecause().find("mapping"), std::string::npos) << "it was not offered";
}

TEST(IpcPaths, descriptorsThatDoNotFitTheDescriptionAreRefused) {
  std::vector<char> memory(1000);
  const std::string nonce(kNonceSize, 'n');
  Description what = heapMemory(memory, nonce);
  what.shareFds = 2;
  LyingOwner owner(what);
  EXPECT_EQ(owner.import().status().code(), Code::invalidArgument);
}

// A stranger names an end of a link that is not his: ours, or that of another conversation.
TEST(IpcPaths, aLinkToAnEndOfAnotherConversationReachesNothing) {
  IpcPair pair;
  Allocation memory(1000);
  auto registration = must(pair.target->registerRegion(memory.region, Access::readWrite));
  auto stranger = test::linkOptions(true);
  stranger.credentials = "another conversation";
  auto another = must(pair.origin->openLink(stranger));
  ASSERT_TRUE(another->connect(pair.back->address()).ok());
  auto reflected = must(pair.origin->openLink(test::linkOptions(true)));
  ASSERT_TRUE(reflected->connect(pair.link->address()).ok());
  auto itself = must(pair.origin->openLink(test::linkOptions(true)));
  ASSERT_TRUE(itself->connect(itself->address()).ok());
  for (Link* link : {another.get(), reflected.get(), itself.get()}) {
    const auto remote = link->importKey(registration->key(), kPatience, nullptr);
    EXPECT_EQ(remote.status().code(), Code::notFound);
    EXPECT_NE(remote.status().message().find("is not the peer"), std::string::npos)
        << remote.status().message();
  }
  EXPECT_TRUE(pair.link->importKey(registration->key(), kPatience, nullptr).ok());
}

TEST(IpcPaths, aClosedLinkDescribesNothing) {
  IpcPair pair;
  Allocation memory(1000);
  auto registration = must(pair.target->registerRegion(memory.region, Access::readWrite));
  pair.back->close(Status(Code::disconnected, "the peer is gone"));
  EXPECT_EQ(pair.link->importKey(registration->key(), kPatience, nullptr).status().code(),
            Code::notFound);
}

TEST(IpcPaths, aKeyOfMemoryThatIsGoneCannotBeImported) {
  IpcPair pair;
  Allocation memory(1000);
  auto registration = must(pair.target->registerRegion(memory.region, Access::readWrite));
  std::string key = registration->key();
  registration.reset();
  EXPECT_EQ(pair.link->importKey(key, kPatience, nullptr).status().code(), Code::notFound);
}

TEST(IpcPaths, damagedKeysNeverDoMoreThanFail) {
  IpcPair pair;
  std::vector<char> heap(1000);
  Allocation memory(1000);
  for (const Region& region : {hostRegion(heap.data(), heap.size()), memory.region}) {
    auto registration = must(pair.target->registerRegion(region, Access::readWrite));
    for (size_t i = 0; i < registration->key().size(); ++i) {
      for (int change : {1, 0x80}) {
        std::string bad = registration->key();
        bad[i] = static_cast<char>(bad[i] ^ change);
        (void)pair.link->importKey(bad, std::chrono::milliseconds(20), nullptr);
      }
    }
    EXPECT_TRUE(pair.link->importKey(registration->key(), kPatience, nullptr).ok());
  }
}

TEST(IpcPaths, nothingToRegisterIsAnError) {
  IpcPair pair;
  char byte = 0;
  for (const Region& region :
       {hostRegion(nullptr, 10), hostRegion(&byte, 0), hostRegion(&byte, SIZE_MAX),
        Region{&byte, 1, {DeviceKind::cpu, 7}}}) {
    EXPECT_FALSE(pair.target->registerRegion(region, Access::read).ok());
  }
}

}  // namespace hmc::ipc
