#include "control/ring.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <random>
#include <thread>

#include "base/futex.h"

namespace hmc::control {
namespace {

struct Pair {
  Pair()
      : created(*RingMemory::create()),
        writer(created.memory, kAcceptorToDialler),
        reader(*RingMemory::attach(created.fd), kAcceptorToDialler) {}

  RingMemory::Created created;
  RingWriter writer;
  RingReader reader;
};

TEST(Ring, deliversRecordsAsTheyWere) {
  Pair ring;
  EXPECT_FALSE(ring.reader.readable());
  EXPECT_EQ(ring.writer.write({1, 0xabcd, true, false}, "hello"), RingOutcome::done);
  EXPECT_EQ(ring.writer.write({2, 7}, ""), RingOutcome::done);
  EXPECT_TRUE(ring.reader.readable());
  RingRecord record;
  std::string payload = ">";
  ASSERT_EQ(ring.reader.read(record, payload), RingOutcome::done);
  EXPECT_EQ(payload, ">hello");
  EXPECT_EQ(record.kind, 1);
  EXPECT_EQ(record.flags, 0xabcd);
  EXPECT_TRUE(record.more);
  EXPECT_FALSE(record.abandoned);
  ASSERT_EQ(ring.reader.read(record, payload), RingOutcome::done);
  EXPECT_EQ(payload, ">hello");
  EXPECT_FALSE(record.more);
  EXPECT_EQ(ring.reader.read(record, payload), RingOutcome::notNow);
}

size_t fill(RingWriter& writer, std::string_view payload) {
  size_t written = 0;
  while (writer.write({}, payload) == RingOutcome::done) ++written;
  return written;
}

RingOutcome readOne(RingReader& reader) {
  RingRecord record;
  std::string payload;
  RingOutcome outcome = reader.read(record, payload);
  reader.release();
  return outcome;
}

TEST(Ring, fullIsNotAnErrorAndRoomComesWithRelease) {
  Pair ring;
  std::string piece(kLargestRecord, 'x');
  for (int i = 0; i < 3; ++i) ASSERT_EQ(ring.writer.write({}, piece), RingOutcome::done);
  EXPECT_EQ(ring.writer.write({}, piece), RingOutcome::notNow);
  RingRecord record;
  std::string out;
  ASSERT_EQ(ring.reader.read(record, out), RingOutcome::done);
  EXPECT_EQ(out, piece);
  EXPECT_EQ(ring.writer.write({}, piece), RingOutcome::notNow);
  ring.reader.release();
  EXPECT_EQ(ring.writer.write({}, piece), RingOutcome::done);
}

size_t howManyFit(size_t size) {
  Pair ring;
  return fill(ring.writer, std::string(size, 'x'));
}

TEST(Ring, aShortMessageTakesOneLine) {
  for (size_t size : {0, 1, 8, 56}) EXPECT_EQ(howManyFit(size), kRingLines) << size;
  for (size_t size : {57, 112}) EXPECT_EQ(howManyFit(size), kRingLines / 2) << size;
}

TEST(Ring, aShortMessageIsReadByItsKindAndSize) {
  Pair ring;
  size_t read = 0;
  EXPECT_FALSE(ring.reader.readShort(3, &read, sizeof(read)));
  for (size_t i = 0; i < 3 * kRingLines; ++i) {
    std::string_view bytes(reinterpret_cast<const char*>(&i), sizeof(i));
    ASSERT_EQ(ring.writer.write({3, 9}, bytes), RingOutcome::done);
    ASSERT_FALSE(ring.reader.readShort(2, &read, sizeof(read)));
    ASSERT_FALSE(ring.reader.readShort(3, &read, sizeof(read) - 1));
    ASSERT_TRUE(ring.reader.readShort(3, &read, sizeof(read)));
    ASSERT_EQ(read, i);
    ASSERT_EQ(readOne(ring.reader), RingOutcome::notNow);
  }
}

TEST(Ring, aRecordThatIsLongOrNotAWholeMessageIsNotShort) {
  Pair ring;
  RingRecord part{.more = true}, nothing{.abandoned = true};
  for (const auto& [record, size] : {std::pair(part, 1), {nothing, 0}, {RingRecord{}, 57}}) {
    ASSERT_EQ(ring.writer.write(record, std::string(size, 'x')), RingOutcome::done);
    char read[kRingLine];
    EXPECT_FALSE(ring.reader.readShort(0, read, size));
    ASSERT_EQ(readOne(ring.reader), RingOutcome::done);
  }
}

TEST(Ring, aReaderThatEmptiedTheRingHasMadeRoomForTheLargestRecord) {
  for (size_t first = 0; first < 300; first += 7) {
    Pair ring;
    for (size_t i = 0; i < first; ++i) ring.writer.write({}, "");
    for (size_t i = 0; i < first; ++i) ASSERT_EQ(readOne(ring.reader), RingOutcome::done);
    size_t filled = fill(ring.writer, "x");
    for (size_t i = 0; i < filled; ++i) ASSERT_EQ(readOne(ring.reader), RingOutcome::done);
    ASSERT_EQ(readOne(ring.reader), RingOutcome::notNow);
    EXPECT_EQ(ring.writer.write({}, std::string(kLargestRecord, 'y')), RingOutcome::done) << first;
  }
}

TEST(Ring, tooLargeARecordIsRefused) {
  Pair ring;
  EXPECT_EQ(ring.writer.write({}, std::string(kLargestRecord + 1, 'x')), RingOutcome::corrupt);
}

TEST(Ring, keepsEveryByteAcrossManyWraps) {
  Pair ring;
  std::mt19937 random(3);
  RingRecord record;
  for (int i = 0; i < 20000; ++i) {
    std::string sent(random() % 300, static_cast<char>(i % 3 ? i : 0xff));
    ASSERT_EQ(ring.writer.write({0, static_cast<uint16_t>(i)}, sent), RingOutcome::done);
    std::string got;
    ASSERT_TRUE(ring.reader.readable());
    ASSERT_EQ(ring.reader.read(record, got), RingOutcome::done);
    ring.reader.release();
    ASSERT_EQ(got, sent);
    ASSERT_EQ(record.flags, static_cast<uint16_t>(i));
    // What the last lap left in the next line is no record, whatever it was.
    ASSERT_FALSE(ring.reader.readable());
    ASSERT_EQ(ring.reader.read(record, got), RingOutcome::notNow);
  }
}

TEST(Ring, twoThreadsThatSleepForEachOtherLoseNothing) {
  Pair ring;
  constexpr uint32_t kCount = 50000;
  std::jthread producer([&] {
    for (uint32_t i = 0; i < kCount; ++i) {
      std::string payload(reinterpret_cast<const char*>(&i), sizeof(i));
      payload.resize(sizeof(i) + i % 700, 'p');
      for (;;) {
        uint32_t ticket = ring.writer.ticket();
        if (ring.writer.write({}, payload) == RingOutcome::done) break;
        ring.writer.announceWaiting();
        if (ring.writer.write({}, payload) == RingOutcome::done) break;
        ring.writer.waitForRoom(ticket, std::chrono::seconds(30));
      }
    }
  });
  for (uint32_t i = 0; i < kCount;) {
    uint32_t seen = ring.reader.signal().load();
    RingRecord record;
    std::string payload;
    RingOutcome outcome = ring.reader.read(record, payload);
    ASSERT_NE(outcome, RingOutcome::corrupt);
    if (outcome == RingOutcome::notNow) {
      ring.reader.announceSleeping();
      if (!ring.reader.readable()) {
        futexWait(ring.reader.signal(), seen, std::chrono::seconds(30));
      }
      continue;
    }
    ring.reader.release();
    uint32_t got = 0;
    std::memcpy(&got, payload.data(), sizeof(got));
    ASSERT_EQ(got, i);
    ASSERT_EQ(payload.size(), sizeof(i) + i % 700);
    ++i;
  }
}

// What a hostile peer can write: every word and every byte.
struct Hostile : Pair {
  Hostile() {
    size_t size = static_cast<size_t>(lseek(created.fd.get(), 0, SEEK_END));
    base = static_cast<char*>(
        mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, created.fd.get(), 0));
    length = size;
  }
  ~Hostile() { munmap(base, length); }
  uint64_t* head() { return reinterpret_cast<uint64_t*>(base); }
  uint64_t* word(size_t line) {
    return reinterpret_cast<uint64_t*>(base + length - 2 * kRingSize + line * kRingLine);
  }
  RingOutcome read() {
    RingRecord record;
    std::string payload;
    return reader.read(record, payload);
  }
  char* base;
  size_t length;
};

TEST(Ring, aLengthThatCannotBeIsCorrupt) {
  for (uint64_t length : {uint64_t{kLargestRecord} + 1, uint64_t{0xffffffff}, uint64_t{1} << 31}) {
    Hostile ring;
    ASSERT_EQ(ring.writer.write({}, ""), RingOutcome::done);
    *ring.word(0) |= length;
    EXPECT_EQ(ring.read(), RingOutcome::corrupt) << length;
  }
}

TEST(Ring, bitsThatNobodyKnowsAreCorrupt) {
  for (int bit = 43; bit < 48; ++bit) {
    Hostile ring;
    ASSERT_EQ(ring.writer.write({}, "x"), RingOutcome::done);
    *ring.word(0) |= uint64_t{1} << bit;
    char read = 0;
    EXPECT_FALSE(ring.reader.readShort(0, &read, 1));
    EXPECT_EQ(ring.read(), RingOutcome::corrupt) << bit;
  }
}

TEST(Ring, aRecordWhoseFurtherLinesWereNotWrittenIsCorrupt) {
  Hostile ring;
  ASSERT_EQ(ring.writer.write({}, std::string(150, 'x')), RingOutcome::done);
  *ring.word(2) = 0;
  EXPECT_EQ(ring.read(), RingOutcome::corrupt);
}

TEST(Ring, aHeadThatCannotBeIsCorruptForTheWriter) {
  Hostile ring;
  fill(ring.writer, "x");
  *ring.head() = kRingLines + 1;
  EXPECT_EQ(ring.writer.write({}, "x"), RingOutcome::corrupt);
  *ring.head() = 5;
  EXPECT_EQ(ring.writer.write({}, std::string(5 * 56, 'x')), RingOutcome::done);
  *ring.head() = 4;
  EXPECT_EQ(ring.writer.write({}, "x"), RingOutcome::corrupt) << "it went back";
}

TEST(Ring, randomContentsNeverReadOutOfBounds) {
  std::mt19937_64 random(5);
  for (int round = 0; round < 3000; ++round) {
    Hostile ring;
    for (size_t line = 0; line < kRingLines; ++line) {
      uint64_t length = random() % 3 ? random() % 200 : random();
      *ring.word(line) = random() % 2 ? length : uint64_t{1} << 42 | length % (kLargestRecord + 9);
    }
    for (int reads = 0; reads < 10000 && ring.read() == RingOutcome::done; ++reads) {
      ring.reader.release();
    }
  }
}

TEST(Ring, memoryThatCouldShrinkIsNotMapped) {
  Fd fd(memfd_create("loose", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(ftruncate(fd.get(), 4096 + 2 * kRingSize), 0);
  EXPECT_FALSE(RingMemory::attach(fd).ok());
  Fd small(memfd_create("small", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  EXPECT_FALSE(RingMemory::attach(small).ok());
}

}  // namespace
}  // namespace hmc::control
