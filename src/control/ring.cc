#include "control/ring.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "base/futex.h"

namespace hmc {

// Positions only grow; the place in the ring is the position modulo its size. What one side writes
// shares no cache line with what the other does.
struct RingState {
  alignas(64) std::atomic<uint64_t> tail;  // the producer's
  alignas(64) std::atomic<uint64_t> head;  // the consumer's
  alignas(64) std::atomic<uint32_t> signal;
  std::atomic<uint32_t> sleeping;  // the consumer wants signal changed when there are bytes
  alignas(64) std::atomic<uint32_t> room;
  std::atomic<uint32_t> waiting;  // the producer wants room changed when there is room
};

namespace {

constexpr size_t kStates = 4096;
constexpr size_t kMapping = kStates + 2 * kRingSize;
constexpr size_t kRecordHeader = 8;
constexpr uint8_t kMore = 1;
constexpr uint8_t kAbandoned = 2;
constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

static_assert(2 * sizeof(RingState) <= kStates);
static_assert(std::atomic<uint64_t>::is_always_lock_free);
static_assert(kRingSize % kRecordHeader == 0);

struct RecordHeader {
  uint32_t length;
  uint8_t kind;
  uint8_t bits;
  uint16_t flags;
};
static_assert(sizeof(RecordHeader) == kRecordHeader);

size_t padded(size_t length) {
  return kRecordHeader + (length + 7) / 8 * 8;
}

void copyIn(char* ring, uint64_t position, const void* from, size_t size) {
  size_t place = position % kRingSize;
  size_t first = std::min(size, kRingSize - place);
  std::memcpy(ring + place, from, first);
  std::memcpy(ring, static_cast<const char*>(from) + first, size - first);
}

void copyOut(const char* ring, uint64_t position, void* to, size_t size) {
  size_t place = position % kRingSize;
  size_t first = std::min(size, kRingSize - place);
  std::memcpy(to, ring + place, first);
  std::memcpy(static_cast<char*>(to) + first, ring, size - first);
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
  return reinterpret_cast<RingState*>(base_)[direction];
}

char* RingMemory::bytes(int direction) const {
  return base_ + kStates + static_cast<size_t>(direction) * kRingSize;
}

RingWriter::RingWriter(std::shared_ptr<RingMemory> memory, int direction)
    : memory_(std::move(memory)),
      state_(&memory_->state(direction)),
      bytes_(memory_->bytes(direction)) {}

RingOutcome RingWriter::write(const RingRecord& record, std::string_view payload) {
  uint64_t used = tail_ - state_->head.load(std::memory_order_acquire);
  if (used > kRingSize || payload.size() > kLargestRecord) return RingOutcome::corrupt;
  if (padded(payload.size()) > kRingSize - used) return RingOutcome::notNow;
  uint8_t bits =
      static_cast<uint8_t>((record.more ? kMore : 0) | (record.abandoned ? kAbandoned : 0));
  RecordHeader header{static_cast<uint32_t>(payload.size()), record.kind, bits, record.flags};
  copyIn(bytes_, tail_, &header, sizeof(header));
  copyIn(bytes_, tail_ + kRecordHeader, payload.data(), payload.size());
  tail_ += padded(payload.size());
  // Sequentially consistent with announceSleeping(): one of the two sees the other.
  state_->tail.store(tail_);
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
      bytes_(memory_->bytes(direction)) {}

RingOutcome RingReader::read(RingRecord& record, std::string& payload) {
  uint64_t head = head_.load(std::memory_order_relaxed);
  uint64_t there = state_->tail.load() - head;
  if (there == 0) return RingOutcome::notNow;
  if (there > kRingSize || there % kRecordHeader != 0) return RingOutcome::corrupt;
  RecordHeader header;  // a copy: the peer can change the original at any time
  copyOut(bytes_, head, &header, sizeof(header));
  if (header.length > kLargestRecord || padded(header.length) > there) return RingOutcome::corrupt;
  record = {header.kind, header.flags, (header.bits & kMore) != 0, (header.bits & kAbandoned) != 0};
  size_t before = payload.size();
  payload.resize(before + header.length);
  copyOut(bytes_, head + kRecordHeader, payload.data() + before, header.length);
  head_.store(head + padded(header.length), std::memory_order_relaxed);
  return RingOutcome::done;
}

void RingReader::release() {
  // Sequentially consistent with announceWaiting(): one of the two sees the other.
  state_->head.store(head_.load(std::memory_order_relaxed));
  if (state_->waiting.load() != 0) {
    state_->waiting.store(0);
    wake(state_->room);
  }
}

bool RingReader::readable() const {
  return state_->tail.load() != head_.load(std::memory_order_relaxed);
}

std::atomic<uint32_t>& RingReader::signal() const {
  return state_->signal;
}

void RingReader::announceSleeping() const {
  state_->sleeping.store(1);
}

}  // namespace hmc
