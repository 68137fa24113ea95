#include <dirent.h>

#include <fstream>

#include "base/codec.h"
#include "contract/second_process.h"
#include "memory/device_of.h"
#include "unit/memory/fake_cuda.h"

// Memory that others allocated, and shares whose bytes nobody can trust.
namespace hmc::cuda {
namespace {

using testing::HasSubstr;

constexpr size_t kGranule = size_t{2} << 20;
constexpr uint8_t kByDescriptor = 1;
constexpr uint8_t kByLegacyHandle = 3;

size_t openDescriptors() {
  size_t count = 0;
  DIR* folder = opendir("/proc/self/fd");
  while (readdir(folder)) ++count;
  closedir(folder);
  return count;
}

size_t mappingsOfTheFake() {
  size_t count = 0;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    if (line.find("hmc-fake-cuda") != std::string::npos) ++count;
  }
  return count;
}

class CudaSharing : public FakeCuda {
 protected:
  Share shareOf(const Region& region) {
    return test::must(backend->share(region, ShareFor::process));
  }
  // Refused, and not with a crash or a mapping that stays.
  void expectRefused(const Share& share) {
    const test::FakeCudaLive before = live();
    auto attached = backend->attach(share, nullptr);
    ASSERT_FALSE(attached.ok());
    EXPECT_GT(attached.status().message().size(), 20u) << attached.status().message();
    EXPECT_TRUE(live() == before) << attached.status().message();
  }
  static std::string physical(uint64_t size) { return Writer().u8(kByDescriptor).u64(size).take(); }
};

TEST_F(CudaSharing, locatesMemoryThatOthersAllocated) {
  Region theirs = allocateAsOthersDo(10000, 1);
  for (size_t offset : {0, 1, 9999}) {
    auto found = backend->locate(theirs.at(offset));
    ASSERT_TRUE(found.ok()) << found.status().toString();
    EXPECT_EQ(found->ptr, theirs.ptr);
    EXPECT_EQ(found->size, 10000u);
    EXPECT_EQ(found->device, theirs.device);
  }
  EXPECT_EQ(backend->locate(theirs.at(10000)).status().code(), Code::notFound);
  EXPECT_EQ(test::must(deviceOf(theirs.at(5))), theirs.device);
  EXPECT_EQ(backend->release(theirs.ptr).code(), Code::invalidArgument);
  write(theirs, std::string(10000, 't'));
  EXPECT_EQ(read(theirs), std::string(10000, 't'));
  freeAsOthersDo(theirs);
  EXPECT_EQ(backend->locate(theirs.ptr).status().code(), Code::notFound);
}

TEST_F(CudaSharing, doesNotTakeADriverThatFailsForOneThatDoesNotKnowTheMemory) {
  Region theirs = allocateAsOthersDo(10000);
  fail("cuPointerGetAttributes", 1, 700);
  Status failed = backend->locate(theirs.ptr).status();
  EXPECT_EQ(failed.code(), Code::failed);
  EXPECT_THAT(failed.message(), HasSubstr("ILLEGAL_ADDRESS"));
  freeAsOthersDo(theirs);
}

TEST_F(CudaSharing, takesManagedMemoryForTheHosts) {
  Current current(driver, contextOf(0));
  CuPointer made = 0;
  ASSERT_EQ(call<CuResult(CuPointer*, size_t, unsigned)>("cuMemAllocManaged", &made, 4096, 1),
            kSuccess);
  EXPECT_EQ(backend->locate(pointer(made)).status().code(), Code::notFound);
  EXPECT_EQ(test::must(deviceOf(pointer(made))), Device{});
  EXPECT_EQ(call<CuResult(CuPointer)>("cuMemFree_v2", made), kSuccess);
}

// The other half of the next test, run in a second process. A handle that is opened twice gives the
// same addresses twice.
TEST_F(CudaSharing, DISABLED_secondProcessOpensALegacyHandle) {
  const Share share = test::must(SecondProcess::inheritedShare());
  auto first = backend->attach(share, nullptr);
  auto second = backend->attach(share, nullptr);
  ASSERT_TRUE(first.ok()) << first.status().toString();
  ASSERT_TRUE(second.ok()) << second.status().toString();
  EXPECT_EQ(first->device.index, 1);
  EXPECT_EQ(read(*first), std::string(5000, 'q'));
  EXPECT_TRUE(backend->detach(*first).ok());
  write(*second, std::string(5000, 'a'));
  EXPECT_TRUE(backend->detach(*second).ok());
  EXPECT_FALSE(backend->detach(*second).ok());
  EXPECT_EQ(live().mappings, 0u);

  auto reservation = test::must(backend->reserve(kGranule, nullptr));
  EXPECT_EQ(backend->attach(share, reservation->region.ptr).status().code(), Code::unsupported);
  Share lie = test::must(SecondProcess::inheritedShare());
  lie.offset = ~uint64_t{0} - 100;
  expectRefused(lie);
  lie.offset = kGranule - 10;
  expectRefused(lie);
  lie.offset = 0;
  lie.size = 0;
  expectRefused(lie);
  lie.size = 10;
  lie.handle.resize(lie.handle.size() - 1);
  expectRefused(lie);
  lie.handle.resize(1 + sizeof(CuIpcMemHandle), '\0');
  lie.handle.replace(1, sizeof(CuIpcMemHandle), sizeof(CuIpcMemHandle), '?');
  expectRefused(lie);
  // What is still attached goes with the backend.
  ASSERT_TRUE(backend->attach(share, nullptr).ok());
  reservation.reset();
  backend.reset();
  EXPECT_EQ(live().mappings, 0u);
}

TEST_F(CudaSharing, sharesMemoryThatOthersAllocatedByItsLegacyHandle) {
  Region theirs = allocateAsOthersDo(100000, 1);
  write(theirs.slice(3000, 5000), std::string(5000, 'q'));
  const Share share = shareOf(theirs.slice(3000, 5000));
  EXPECT_TRUE(share.fds.empty());
  EXPECT_EQ(SecondProcess::run("DISABLED_secondProcessOpensALegacyHandle", share), 0);
  EXPECT_EQ(read(theirs.slice(3000, 5000)), std::string(5000, 'a'));
  EXPECT_EQ(read(theirs.slice(8000, 1)), std::string(1, '\0'));
  freeAsOthersDo(theirs);
}

// Expandable segments of torch: pieces of physical memory, side by side in more addresses than
// that.
class OthersPieces {
 public:
  OthersPieces(const Driver& driver, size_t count, int handleTypes = kHandleDescriptor)
      : driver_(driver), count_(count) {
    CuMemProperties properties{};
    properties.type = kAllocationPinned;
    properties.location = {kLocationDevice, 0};
    EXPECT_EQ(driver_.cuMemAddressReserve(&base_, reserved(), 0, 0, 0), kSuccess);
    for (size_t i = 0; i < count_; ++i) {
      properties.requestedHandleTypes = handleTypes;
      CuAllocation piece = 0;
      EXPECT_EQ(driver_.cuMemCreate(&piece, kGranule, &properties, 0), kSuccess);
      EXPECT_EQ(driver_.cuMemMap(base_ + i * kGranule, kGranule, 0, piece, 0), kSuccess);
      EXPECT_EQ(driver_.cuMemRelease(piece), kSuccess);
    }
    const CuMemAccess access{{kLocationDevice, 0}, kReadWrite};
    EXPECT_EQ(driver_.cuMemSetAccess(base_, count_ * kGranule, &access, 1), kSuccess);
  }
  ~OthersPieces() {
    EXPECT_EQ(driver_.cuMemUnmap(base_, count_ * kGranule), kSuccess);
    EXPECT_EQ(driver_.cuMemAddressFree(base_, reserved()), kSuccess);
  }
  OthersPieces(const OthersPieces&) = delete;
  OthersPieces& operator=(const OthersPieces&) = delete;

  Region part(size_t offset, size_t size) const {
    return {pointer(base_) + offset, size, {DeviceKind::cuda, 0}};
  }

 private:
  size_t reserved() const { return (count_ + 1) * kGranule; }

  const Driver& driver_;
  const size_t count_;
  CuPointer base_ = 0;
};

TEST_F(CudaSharing, sharesPiecesThatOthersMappedSideBySide) {
  const test::FakeCudaLive before = live();
  {
    OthersPieces pieces(driver, 4);
    for (const Region& some :
         {pieces.part(100, 5000), pieces.part(kGranule + 100, 5000), pieces.part(0, 4 * kGranule),
          pieces.part(kGranule - 7, 2 * kGranule + 14), pieces.part(2 * kGranule, kGranule)}) {
      SCOPED_TRACE(testing::Message() << some.at(0) - pieces.part(0, 1).at(0) << ' ' << some.size);
      write(some, std::string(some.size, 's'));
      write(some.slice(some.size - 3, 3), "end");
      auto attached = backend->attach(shareOf(some), nullptr);
      ASSERT_TRUE(attached.ok()) << attached.status().toString();
      EXPECT_EQ(attached->size, some.size);
      EXPECT_EQ(read(*attached), std::string(some.size - 3, 's') + "end");
      write(*attached, std::string(some.size, 'a'));
      EXPECT_EQ(read(some), std::string(some.size, 'a'));
      EXPECT_TRUE(backend->detach(*attached).ok());
    }
    EXPECT_EQ(shareOf(pieces.part(kGranule - 1, 2)).fds.size(), 2u);
    EXPECT_EQ(shareOf(pieces.part(kGranule, kGranule)).fds.size(), 1u);
  }
  EXPECT_TRUE(live() == before);
}

TEST_F(CudaSharing, sharesWhatItAttachedInPieces) {
  OthersPieces pieces(driver, 2);
  const Region some = pieces.part(kGranule - 50, 100);
  write(some, std::string(100, 'w'));
  auto first = test::must(backend->attach(shareOf(some), nullptr));
  auto second = test::must(backend->attach(shareOf(first), nullptr));
  EXPECT_EQ(read(second), std::string(100, 'w'));
  EXPECT_TRUE(backend->detach(first).ok());
  EXPECT_TRUE(backend->detach(second).ok());
}

TEST_F(CudaSharing, piecesCanBePlacedInAReservation) {
  OthersPieces pieces(driver, 3);
  write(pieces.part(0, 3 * kGranule), std::string(3 * kGranule, 'r'));
  auto reservation = test::must(backend->reserve(4 * kGranule, nullptr));
  void* place = reservation->region.at(kGranule);
  auto attached = backend->attach(shareOf(pieces.part(0, 2 * kGranule + 1)), place);
  ASSERT_TRUE(attached.ok()) << attached.status().toString();
  EXPECT_EQ(attached->ptr, place);
  EXPECT_EQ(read(*attached), std::string(2 * kGranule + 1, 'r'));
  EXPECT_TRUE(backend->detach(*attached).ok());
}

TEST_F(CudaSharing, saysHowManyPiecesAreTooMany) {
  const size_t most = Share::kMostPieces;
  OthersPieces pieces(driver, most + 1);
  EXPECT_EQ(shareOf(pieces.part(0, most * kGranule)).fds.size(), most);
  auto refused = backend->share(pieces.part(0, most * kGranule + 1), ShareFor::process);
  EXPECT_EQ(refused.status().code(), Code::unsupported);
  EXPECT_THAT(refused.status().message(), HasSubstr("more than 128 pieces"));
}

TEST_F(CudaSharing, saysWhyPiecesCannotBeSharedAndWhatToDo) {
  OthersPieces pieces(driver, 2, /*handleTypes=*/0);
  auto refused = backend->share(pieces.part(0, kGranule + 1), ShareFor::process);
  EXPECT_EQ(refused.status().code(), Code::unsupported);
  EXPECT_THAT(refused.status().message(), HasSubstr("TORCH_CUDA_EXPANDABLE_SEGMENTS_IPC"));
  // The last address has nothing behind it.
  OthersPieces shareable(driver, 2);
  auto beyond = backend->share(shareable.part(kGranule, kGranule + 1), ShareFor::process);
  EXPECT_EQ(beyond.status().code(), Code::invalidArgument);
  EXPECT_THAT(beyond.status().message(), HasSubstr("not mapped"));
}

TEST_F(CudaSharing, aPieceThatCannotBeMappedLeavesNothingBehind) {
  OthersPieces pieces(driver, 3);
  const Region all = pieces.part(0, 3 * kGranule);
  for (const char* function : {"cuMemExportToShareableHandle", "cuMemRetainAllocationHandle"}) {
    const test::FakeCudaLive before = live();
    fail(function, 3, kOutOfMemory);
    EXPECT_EQ(backend->share(all, ShareFor::process).status().code(), Code::exhausted) << function;
    EXPECT_TRUE(live() == before) << function;
  }
  const Share share = shareOf(all);
  for (const char* function : {"cuMemImportFromShareableHandle", "cuMemMap"}) {
    fail(function, 3, kOutOfMemory);
    SCOPED_TRACE(function);
    expectRefused(share);
  }
  fail("cuMemSetAccess", 1, kOutOfMemory);
  expectRefused(share);
}

TEST_F(CudaSharing, refusesSharesWhoseBytesLie) {
  Region region = test::must(backend->allocate(0, 100000));
  auto lying = [&](std::string handle, uint64_t offset, uint64_t size) {
    Share share = shareOf(region);
    share.handle = std::move(handle);
    share.offset = offset;
    share.size = size;
    SCOPED_TRACE(testing::Message() << share.handle.size() << " " << offset << " " << size);
    expectRefused(share);
  };
  const uint64_t huge = ~uint64_t{0};
  lying(physical(2 * kGranule), 0, 2 * kGranule);     // more than there is
  lying(physical(huge / kGranule * kGranule), 0, 1);  // than there can be
  lying(physical(huge), 0, 1);
  lying(physical(0), 0, 1);
  lying(physical(kGranule + 1), 0, 1);
  lying(physical(kGranule), kGranule, 1);  // beyond the end
  lying(physical(kGranule), huge, 2);
  lying(physical(kGranule), 1, huge);
  lying(physical(kGranule), 0, 0);
  lying(physical(kGranule).substr(0, 5), 0, 1);
  lying(physical(kGranule) + physical(kGranule).substr(1), 0, 1);  // one descriptor for two
  lying("", 0, 1);
  lying("\xff", 0, 1);
  lying(Writer().u8(kByLegacyHandle).take(), 0, 1);
  Share none = shareOf(region);
  none.fds.clear();
  expectRefused(none);
  Share another = shareOf(region);
  another.fds[0] = Fd(dup(0));
  expectRefused(another);
  EXPECT_TRUE(backend->release(region.ptr).ok());
}

TEST_F(CudaSharing, leaksNothingOverManyRounds) {
  std::string bytes(10000, 'r');
  auto reservation = test::must(backend->reserve(kGranule, nullptr));
  auto round = [&] {
    Region region = test::must(backend->allocate(0, bytes.size()));
    auto pinned = test::must(backend->pin(host(bytes)));
    ASSERT_TRUE(copyNow(region, host(bytes)).ok());
    const Share share = shareOf(region);
    for (void* at : {static_cast<void*>(nullptr), reservation->region.ptr}) {
      auto attached = backend->attach(share, at);
      ASSERT_TRUE(attached.ok()) << attached.status().toString();
      ASSERT_TRUE(backend->detach(*attached).ok());
    }
    ASSERT_TRUE(backend->release(region.ptr).ok());
  };
  round();
  const test::FakeCudaLive before = live();
  const size_t mappings = mappingsOfTheFake();
  const size_t descriptors = openDescriptors();
  for (int i = 0; i < 200; ++i) ASSERT_NO_FATAL_FAILURE(round());
  EXPECT_TRUE(live() == before);
  EXPECT_EQ(openDescriptors(), descriptors);
  EXPECT_EQ(mappingsOfTheFake(), mappings);
}

}  // namespace
}  // namespace hmc::cuda
