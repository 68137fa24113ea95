#include "contract/memory_contract.h"

#include <vector>

#include "memory/staging_buffer.h"

namespace hmc {

TEST_P(MemoryContract, copiesToAndFromTheHostAtOddSizesAndOffsets) {
  Region region = allocate(300000);
  std::string expected(300000, '\0');
  unsigned seed = 0;
  for (size_t size : {size_t{1}, size_t{7}, size_t{64}, size_t{4095}, size_t{65537}}) {
    for (size_t offset : {size_t{0}, size_t{1}, size_t{63}, size_t{4097}, 300000 - size}) {
      std::string bytes = pattern(size, ++seed);
      write(region.slice(offset, size), bytes);
      expected.replace(offset, size, bytes);
      ASSERT_EQ(read(region.slice(offset, size)), bytes);
    }
  }
  EXPECT_EQ(read(region), expected);
  release(region);
}

TEST_P(MemoryContract, copiesNothingWhenTheSourceIsEmpty) {
  Region region = allocate(4096);
  EXPECT_TRUE(copyNow(region, region.slice(10, 0)).ok());
  EXPECT_EQ(read(region), std::string(4096, '\0'));
  release(region);
}

TEST_P(MemoryContract, copiesLargePieces) {
  const size_t size = (size_t{9} << 20) + 13;
  Region region = allocate(size + 5);
  std::string bytes = pattern(size, 17);
  write(region.slice(5, size), bytes);
  EXPECT_TRUE(read(region.slice(5, size)) == bytes);
  EXPECT_EQ(read(region.slice(0, 5)), std::string(5, '\0'));
  release(region);
}

TEST_P(MemoryContract, copiesWithinAndBetweenDevices) {
  Region first = allocate(10000, 0);
  Region second = allocate(10000, lastDevice());
  write(first, pattern(10000, 5));
  EXPECT_TRUE(copyNow(second.slice(1, 9999), first.slice(0, 9999)).ok());
  EXPECT_EQ(read(second.slice(1, 9999)), pattern(9999, 5));
  EXPECT_TRUE(copyNow(first.slice(0, 100), first.slice(5000, 100)).ok());
  EXPECT_EQ(read(first.slice(0, 100)), pattern(10000, 5).substr(5000, 100));
  release(first);
  release(second);
}

TEST_P(MemoryContract, copiesEveryPieceOfABatch) {
  constexpr size_t kPieces = 100;
  constexpr size_t kStep = 1000;
  Region region = allocate(kPieces * kStep, lastDevice());
  std::string bytes = pattern(kPieces * kStep, 13);
  std::vector<Block> blocks;
  uint64_t total = 0;
  for (size_t i = 0; i < kPieces; ++i) {
    // Sizes from 0 on; what lies between the pieces stays as it is.
    blocks.push_back({i * kStep, i * kStep, i * 7});
    total += i * 7;
  }
  const DeviceQueue queue{region.device};
  ASSERT_TRUE(backend->copy({region, hostRegion(bytes), blocks, total}, queue).ok());
  drain(queue);
  std::string expected(kPieces * kStep, '\0');
  for (size_t i = 0; i < kPieces; ++i) {
    expected.replace(i * kStep, i * 7, bytes.substr(i * kStep, i * 7));
  }
  EXPECT_EQ(read(region), expected);
  EXPECT_TRUE(backend->copy({region, hostRegion(bytes), {}, 0}, queue).ok());
  release(region);
}

// Short lists, long ones, and very long ones, of blocks whose ends lie anywhere, from what the
// blocks call local to what they call remote and the other way.
TEST_P(MemoryContract, copiesListsOfAnyLengthWithinADeviceAndToPinnedMemory) {
  constexpr size_t kStep = 160;
  for (size_t count : {size_t{2}, size_t{200}, size_t{10000}}) {
    Region from = allocate(count * kStep, lastDevice());
    Region to = allocate(count * kStep, lastDevice());
    std::string bytes = pattern(count * kStep, 19);
    std::string back(count * kStep, '\0');
    auto pinned = backend->pin(hostRegion(back));
    ASSERT_TRUE(pinned.ok()) << pinned.status().toString();
    write(from, bytes);
    std::vector<Block> inside;
    std::vector<Block> out;
    uint64_t total = 0;
    std::string expected(count * kStep, '\0');
    for (size_t i = 0; i < count; ++i) {
      // Both sides off by the same, by a multiple of four, or by anything.
      const size_t source = i * kStep + i % 16;
      const size_t target = i * kStep + (i % 3 == 0 ? i % 16 : i % 3 == 1 ? (i + 4) % 16 : i % 7);
      const size_t size = i % 140;
      inside.push_back({source, target, size});
      out.push_back({target, target, size});
      total += size;
      expected.replace(target, size, bytes, source, size);
    }
    const DeviceQueue queue{to.device};
    EXPECT_TRUE(backend->copy({to, from, inside, total}, queue).ok());
    EXPECT_TRUE(backend->copy({hostRegion(back), to, out, total}, queue).ok());
    drain(queue);
    EXPECT_TRUE(back == expected) << count;
    EXPECT_TRUE(read(to) == expected) << count;
    write(from, std::string(count * kStep, '\0'));
    EXPECT_TRUE(backend->copy({from, to, inside, total, /*toRemote=*/false}, queue).ok());
    drain(queue);
    std::string again(count * kStep, '\0');
    for (const Block& block : inside)
      again.replace(block.localOffset, block.size, bytes, block.localOffset, block.size);
    EXPECT_TRUE(read(from) == again) << count;
    release(from);
    release(to);
  }
}

// Few blocks of very different sizes: a device may have several workers for one of them.
TEST_P(MemoryContract, copiesShortListsOfLargeAndSmallBlocks) {
  constexpr size_t kSizes[] = {300001, 1, 65536, 0, 130, 262144, 127, 129, 99999};
  constexpr size_t kStep = 310000;
  for (size_t rounds : {size_t{1}, size_t{20}}) {
    const size_t count = rounds * std::size(kSizes);
    Region from = allocate(count * kStep, lastDevice());
    Region to = allocate(count * kStep, lastDevice());
    const std::string bytes = pattern(count * kStep, 23);
    write(from, bytes);
    std::vector<Block> blocks;
    uint64_t total = 0;
    std::string expected(count * kStep, '\0');
    for (size_t i = 0; i < count; ++i) {
      const size_t size = kSizes[i % std::size(kSizes)];
      blocks.push_back({i * kStep + i % 5 * 16, i * kStep + i % 3, size});
      expected.replace(blocks[i].remoteOffset, size, bytes, blocks[i].localOffset, size);
      total += size;
    }
    const DeviceQueue queue{to.device};
    EXPECT_TRUE(backend->copy({to, from, blocks, total}, queue).ok());
    drain(queue);
    EXPECT_TRUE(read(to) == expected) << rounds;
    release(from);
    release(to);
  }
}

// Blocks of one size, of which whoever copies them may make use.
TEST_P(MemoryContract, copiesListsOfBlocksOfOneSize) {
  constexpr size_t kStep = 160;
  for (size_t each : {size_t{1}, size_t{48}, size_t{77}}) {
    for (size_t count : {size_t{3}, size_t{131}, size_t{5003}}) {
      Region from = allocate(count * kStep, lastDevice());
      Region to = allocate(count * kStep, lastDevice());
      const std::string bytes = pattern(count * kStep, each);
      write(from, bytes);
      std::vector<Block> blocks;
      std::string expected(count * kStep, '\0');
      for (size_t i = 0; i < count; ++i) {
        blocks.push_back({i * kStep + i % 5, (count - 1 - i) * kStep + i % 3, each});
        expected.replace(blocks[i].remoteOffset, each, bytes, blocks[i].localOffset, each);
      }
      const DeviceQueue queue{to.device};
      const auto list = std::move(StagingBuffer::create(count * sizeof(Place))).value();
      list->pinFor(*backend);
      auto* places = static_cast<Place*>(list->region(0).ptr);
      const EvenBlocks even = writePlaces(blocks, count * kStep, count * kStep, places);
      ASSERT_TRUE(even.places);
      EXPECT_TRUE(backend->copy({to, from, blocks, count * each, true, even}, queue).ok());
      drain(queue);
      EXPECT_TRUE(read(to) == expected) << each << " " << count;
      write(from, std::string(count * kStep, '\0'));
      EXPECT_TRUE(backend->copy({from, to, blocks, count * each, false, even}, queue).ok());
      drain(queue);
      std::string back(count * kStep, '\0');
      for (const Block& block : blocks)
        back.replace(block.localOffset, each, bytes, block.localOffset, each);
      EXPECT_TRUE(read(from) == back) << each << " " << count;
      release(from);
      release(to);
    }
  }
}

TEST_P(MemoryContract, runsBatchesOfOneQueueInOrder) {
  Region region = allocate(4096, lastDevice());
  const DeviceQueue queue{region.device};
  std::string first = pattern(4096, 1);
  std::string second = pattern(2048, 2);
  std::string back(4096, '?');
  EXPECT_TRUE(enqueue(region, hostRegion(first), queue).ok());
  EXPECT_TRUE(enqueue(region, hostRegion(second), queue).ok());
  EXPECT_TRUE(enqueue(hostRegion(back), region, queue).ok());
  drain(queue);
  EXPECT_EQ(back, second + first.substr(2048));
  release(region);
}

TEST_P(MemoryContract, refusesToCopyOnQueuesThatAreNotItsOwn) {
  Region region = allocate(4096);
  std::string bytes(4096, 'x');
  for (Device device : {Device{backend->facts().kind, lastDevice() + 1}, Device{otherKind(), 0}}) {
    EXPECT_EQ(enqueue(region, hostRegion(bytes), DeviceQueue{device}).code(),
              Code::invalidArgument);
  }
  EXPECT_EQ(read(region), std::string(4096, '\0'));
  release(region);
}

TEST_P(MemoryContract, refusesToCopyWhatIsOnAnotherKind) {
  Region region = allocate(4096);
  std::string bytes(4096, 'x');
  Region elsewhere{bytes.data(), bytes.size(), Device{otherKind(), 0}};
  EXPECT_EQ(enqueue(region, elsewhere, {region.device}).code(), Code::invalidArgument);
  EXPECT_EQ(enqueue(elsewhere, region, {region.device}).code(), Code::invalidArgument);
  release(region);
}

}  // namespace hmc
