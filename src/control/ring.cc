#include "control/ring.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "base/futex.h"

namespace hmc::control {

// Positions count lines and only grow; the place in the ring is the position modulo its size. What
// one side writes shares no cache line with what the other does.
struct RingState {
  alignas(64) std::atomic<uint64_t> head;  // the consumer's
  alignas(64) std::atomic<uint32_t> signal;
  std::atomic<uint32_t> sleeping;  // the consumer wants signal changed when there are records
  alignas(64) std::atomic<uint32_t> room;
  std::atomic<uint32_t> waiting;  // the producer wants room changed when there is room
};

struct RingLine {
  std::atomic<uint64_t> word;
  char bytes[56];
};

namespace {

constexpr size_t kStates = 4096;
constexpr size_t kStateStride = 256;
constexpr size_t kMapping = kStates + 2 * kRingSize;
// A consumer tells its position every so often, not for every record. A producer that then finds no
// room has at least a few times as many lines unread, so there is a next time.
constexpr uint64_t kReleaseEvery = kRingLines / 8;
constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

// A word: u32 length, u8 kind, u8 bits, u16 flags, from the low end. The turn changes with every
// lap, so that a line that was not written in this lap is told from one that was. It begins at 1:
// fresh memory is empty.
constexpr uint64_t kMore = uint64_t{1} << 40;
constexpr uint64_t kAbandoned = uint64_t{1} << 41;
constexpr uint64_t kTurn = uint64_t{1} << 42;
constexpr uint64_t kUnknownBits = uint64_t{0xf8} << 40;
constexpr uint64_t kFlags = uint64_t{0xffff} << 48;

static_assert(sizeof(RingState) <= kStateStride && 2 * kStateStride <= kStates);
static_assert(sizeof(RingLine) == kRingLine && sizeof(RingLine::bytes) == kShortRecord);
static_assert(std::atomic<uint64_t>::is_always_lock_free);

uint64_t turnAt(uint64_t position) {
  return position / kRingLines % 2 == 0 ? kTurn : 0;
}

uint64_t encode(const RingRecord& record, size_t length) {
  return length | uint64_t{record.kind} << 32 | (record.more ? kMore : 0) |
         (record.abandoned ? kAbandoned : 0) | uint64_t{record.flags} << 48;
}

RingRecord decode(uint64_t word) {
  return {static_cast<uint8_t>(word >> 32), static_cast<uint16_t>(word >> 48), (word & kMore) != 0,
          (word & kAbandoned) != 0};
}

// What a tag is made of is copied without a call.
void copyShort(void* to, const void* from, size_t size) {
  if (size == sizeof(uint64_t)) {
    std::memcpy(to, from, sizeof(uint64_t));
  } else if (size > 0) {  // an empty message has no address
    std::memcpy(to, from, size);
  }
}

size_t linesFor(size_t length) {
  return length <= kShortRecord ? 1 : (length + kShortRecord - 1) / kShortRecord;
}

Result<void*> mapRing(int fd) {
  void* base = mmap(nullptr, kMapping, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (base == MAP_FAILED) return errnoStatus("map the message ring");
  return base;
}

void wake(std::atomic<uint32_t>& word) {
  word.fetch_add(1);
  futexWakeAll(word);
}

}  // namespace

Result<RingMemory::Created> RingMemory::create() {
  Fd fd(memfd_create("hmc-ring", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd) return errnoStatus("create the message ring");
  if (ftruncate(fd.get(), kMapping) != 0) return errnoStatus("size the message ring");
  if (fcntl(fd.get(), F_ADD_SEALS, kSeals) != 0) return errnoStatus("seal the message ring");
  HMC_ASSIGN(void* base, mapRing(fd.get()));
  return Created{std::shared_ptr<RingMemory>(new RingMemory(base)), std::move(fd)};
}

Result<std::shared_ptr<RingMemory>> RingMemory::attach(const Fd& fd) {
  struct stat facts {};
  if (fstat(fd.get(), &facts) != 0) return errnoStatus("look at the peer's message ring");
  int seals = fcntl(fd.get(), F_GET_SEALS);
  if (facts.st_size != static_cast<off_t>(kMapping) || seals < 0 || !(seals & F_SEAL_SHRINK)) {
    return error(Code::failed, "the peer's message ring has {} bytes and seals {}, not {} sealed",
                 facts.st_size, seals, kMapping);
  }
  HMC_ASSIGN(void* base, mapRing(fd.get()));
  return std::shared_ptr<RingMemory>(new RingMemory(base));
}

RingMemory::~RingMemory() {
  munmap(base_, kMapping);
}

RingState& RingMemory::state(int direction) const {
  return *reinterpret_cast<RingState*>(base_ + static_cast<size_t>(direction) * kStateStride);
}

RingLine* RingMemory::lines(int direction) const {
  return reinterpret_cast<RingLine*>(base_ + kStates) + static_cast<size_t>(direction) * kRingLines;
}

RingWriter::RingWriter(std::shared_ptr<RingMemory> memory, int direction)
    : memory_(std::move(memory)),
      state_(&memory_->state(direction)),
      lines_(memory_->lines(direction)) {}

// The consumer's position is looked at only when the ring seems full: its cache line stays with the
// consumer otherwise.
bool RingWriter::hasRoom(size_t lines) {
  if (tail_ + lines - head_ <= kRingLines) return true;
  uint64_t head = state_->head.load();
  // Positions only grow, and not beyond what was written.
  corrupt_ = head < head_ || head > tail_;
  if (corrupt_) return false;
  head_ = head;
  return tail_ + lines - head_ <= kRingLines;
}

RingOutcome RingWriter::write(const RingRecord& record, std::string_view payload) {
  size_t lines = linesFor(payload.size());
  if (payload.size() > kLargestRecord) return RingOutcome::corrupt;
  if (!hasRoom(lines)) return corrupt_ ? RingOutcome::corrupt : RingOutcome::notNow;
  RingLine& first = lines_[tail_ % kRingLines];
  uint64_t word = encode(record, payload.size()) | turnAt(tail_);
  std::string_view rest = payload.substr(std::min(payload.size(), kShortRecord));
  copyShort(first.bytes, payload.data(), payload.size() - rest.size());
  for (uint64_t at = tail_ + 1; at < tail_ + lines; ++at) {
    RingLine& line = lines_[at % kRingLines];
    size_t size = std::min(rest.size(), kShortRecord);
    std::memcpy(line.bytes, rest.data(), size);
    line.word.store(turnAt(at), std::memory_order_relaxed);
    rest.remove_prefix(size);
  }
  tail_ += lines;
  // Releases the bytes, and is sequentially consistent with announceSleeping(): one of the two sees
  // the other.
  first.word.store(word);
  if (state_->sleeping.load() != 0) {
    state_->sleeping.store(0);
    wake(state_->signal);
  }
  return RingOutcome::done;
}

uint32_t RingWriter::ticket() const {
  return state_->room.load();
}

void RingWriter::announceWaiting() {
  state_->waiting.store(1);
}

void RingWriter::waitForRoom(uint32_t ticket, Deadline deadline) const {
  futexWait(state_->room, ticket, deadline);
}

void RingWriter::wakeWaiter() {
  wake(state_->room);
}

RingReader::RingReader(std::shared_ptr<RingMemory> memory, int direction)
    : memory_(std::move(memory)),
      state_(&memory_->state(direction)),
      lines_(memory_->lines(direction)) {}

RingOutcome RingReader::read(RingRecord& record, std::string& payload) {
  uint64_t head = head_.load(std::memory_order_relaxed);
  const RingLine& first = lines_[head % kRingLines];
  // A copy: the peer can change the original at any time.
  uint64_t word = first.word.load(std::memory_order_acquire);
  if ((word & kTurn) != turnAt(head)) return RingOutcome::notNow;
  size_t length = static_cast<uint32_t>(word);
  if (length > kLargestRecord || (word & kUnknownBits) != 0) return RingOutcome::corrupt;
  record = decode(word);
  size_t lines = linesFor(length);
  payload.append(first.bytes, std::min(length, kShortRecord));
  for (uint64_t at = head + 1; at < head + lines; ++at) {
    const RingLine& line = lines_[at % kRingLines];
    if (line.word.load(std::memory_order_relaxed) != turnAt(at)) return RingOutcome::corrupt;
    length -= kShortRecord;
    payload.append(line.bytes, std::min(length, kShortRecord));
  }
  head_.store(head + lines, std::memory_order_relaxed);
  return RingOutcome::done;
}

bool RingReader::readShort(uint8_t kind, void* data, size_t size) {
  uint64_t head = head_.load(std::memory_order_relaxed);
  const RingLine& line = lines_[head % kRingLines];
  uint64_t word = line.word.load(std::memory_order_acquire);
  const bool wanted = (word & ~kFlags) == (encode({kind}, size) | turnAt(head));
  if (!wanted || size > kShortRecord) return false;
  copyShort(data, line.bytes, size);
  head_.store(head + 1, std::memory_order_relaxed);
  release();
  return true;
}

void RingReader::release() {
  uint64_t head = head_.load(std::memory_order_relaxed);
  if (head - released_ < kReleaseEvery) return;
  released_ = head;
  // Sequentially consistent with announceWaiting(): one of the two sees the other.
  state_->head.store(head);
  if (state_->waiting.load() != 0) {
    state_->waiting.store(0);
    wake(state_->room);
  }
}

bool RingReader::readable() const {
  uint64_t head = head_.load(std::memory_order_relaxed);
  return (lines_[head % kRingLines].word.load() & kTurn) == turnAt(head);
}

std::atomic<uint32_t>& RingReader::signal() const {
  return state_->signal;
}

void RingReader::announceSleeping() const {
  state_->sleeping.store(1);
}

}  // namespace hmc::control
