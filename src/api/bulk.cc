#include "api/bulk.h"

#include <algorithm>
#include <deque>

#include "api/bulk_messages.h"
#include "base/error.h"
#include "base/random.h"

namespace hmc {

namespace {

using Word = BulkGrant::Word;

// Pieces of a transfer overlap with each other when there are enough of them. Each costs two
// messages, and a device that copies both ways at once stops for 4 us between two copies.
constexpr size_t kSmallestChunk = size_t{128} << 10;
constexpr size_t kLargestChunk = size_t{4} << 20;
constexpr size_t kChunksAtLeast = 16;
// The first and the last of large chunks are smaller, because nothing overlaps with them.
constexpr size_t kOuterChunk = size_t{512} << 10;
// Registering memory with a transport, for one call, takes longer than copying less than this.
constexpr size_t kWorthRegistering = size_t{1} << 20;

size_t slotSize(const LocalMemory& buffer) {
  constexpr size_t kAligned = 4096;
  const size_t share = buffer.region().size / (2 * kBulkSlots);
  return std::min(kLargestChunk, share < kAligned ? share : share / kAligned * kAligned);
}
size_t sendSlot(size_t chunk, const LocalMemory& buffer) {
  return buffer.region().size / 2 + (chunk % kBulkSlots) * slotSize(buffer);
}
size_t chunkSize(size_t total, size_t slot) {
  return std::min(slot, std::max(kSmallestChunk, total / kChunksAtLeast));
}

// Everything to the receiver that is ready.
class Sending {
 public:
  // Straight from `source`, or where there is none, through slots of our own buffer.
  Sending(const BulkGrant& receiver, Connection& connection,
          const std::shared_ptr<LocalMemory>& buffer, std::shared_ptr<LocalMemory> source,
          const Region& from, Deadline deadline)
      : receiver_(receiver),
        connection_(connection),
        peer_(*connection.peer),
        buffer_(buffer),
        source_(std::move(source)),
        from_(from),
        deadline_(deadline),
        most_(chunkSize(from.size, source_ ? receiver.slot
                                           : std::min<size_t>(receiver.slot, slotSize(*buffer)))) {}
  // The caller gets its memory back.
  ~Sending() {
    for (Put& put : underWay_) (void)put.ticket.cancel();
  }
  Sending(const Sending&) = delete;
  Sending& operator=(const Sending&) = delete;

  // Answers `taken` when the receiver has all of it, or the `ready` of one that came in its place.
  Result<BulkGrant> run() {
    for (;;) {
      while (mayStart()) {
        HMC_TRY(startNext());
        // Where starting is copying, the receiver need not wait for the rest.
        while (!underWay_.empty() && underWay_.front().ticket.over()) HMC_TRY(announceOldest());
      }
      if (!underWay_.empty()) HMC_TRY(announceOldest());
      // Wait for a grant only when there is nothing else to do.
      if (!underWay_.empty() && !peer_.channel().unread(kBulkGrant)) continue;
      HMC_ASSIGN(auto grant, receiveGrant(peer_, receiver_.number, deadline_));
      if (!grant) continue;
      if (grant->word == Word::ready) return *grant;
      if (++taken_ == started_ && allStarted_) return *grant;
    }
  }

 private:
  struct Put {
    Ticket ticket;
    BulkChunk chunk;
  };

  // We keep what is under way in slots of our own, too.
  size_t slots() const { return std::min<size_t>(receiver_.slots, kBulkSlots); }
  bool mayStart() const { return !allStarted_ && started_ - taken_ < slots(); }

  // No more than came before, and than half of what is left.
  size_t nextSize() const {
    const size_t left = from_.size - offset_;
    const size_t most = std::max(kOuterChunk, std::min(offset_, left / 2));
    return std::min({most_, most, left});
  }

  Status startNext() {
    const size_t size = nextSize();
    size_t at = offset_;
    if (!source_) {
      at = sendSlot(started_, *buffer_);
      HMC_TRY(copy(buffer_->region().slice(at, size), from_.slice(offset_, size)));
    }
    const Block block{at, started_ % receiver_.slots * receiver_.slot, size};
    HMC_ASSIGN(Ticket ticket,
               RemoteMapping::start(connection_.buffer, OpKind::put, source_ ? source_ : buffer_,
                                    std::vector<Block>{block}));
    offset_ += size;
    ++started_;
    allStarted_ = offset_ == from_.size;
    underWay_.push_back({std::move(ticket), {receiver_.number, size, allStarted_}});
    return Status();
  }

  Status announceOldest() {
    Put& oldest = underWay_.front();
    HMC_TRY(oldest.ticket.wait(deadline_.left()));
    const BulkChunk chunk = oldest.chunk;
    underWay_.pop_front();
    return sendChunk(peer_, chunk, deadline_);
  }

  const BulkGrant receiver_;
  Connection& connection_;
  PeerState& peer_;
  const std::shared_ptr<LocalMemory> buffer_;
  const std::shared_ptr<LocalMemory> source_;  // null: through buffer_
  const Region from_;
  const Deadline deadline_;
  const size_t most_;  // bytes in a chunk
  size_t offset_ = 0;
  size_t started_ = 0;  // chunks
  size_t taken_ = 0;
  bool allStarted_ = false;
  std::deque<Put> underWay_;
};

// Everything from one sender.
class Receiving {
 public:
  Receiving(PeerState& peer, const LocalMemory& buffer, const Region& into, Deadline deadline)
      : peer_(peer),
        buffer_(buffer.region()),
        slot_(slotSize(buffer)),
        into_(into),
        deadline_(deadline) {}
  // The caller gets its memory back.
  ~Receiving() {
    const Deadline deadline(kCopyTimeout);
    for (Copy& one : underWay_) (void)waitFor(*one.copy, deadline);
  }
  Receiving(const Receiving&) = delete;
  Receiving& operator=(const Receiving&) = delete;

  Result<size_t> run() {
    const Status status = receiveAll();
    if (status.ok()) return received_;
    // A receiver that gave up may come again, and the sender waits for it.
    if (status.code() != Code::deadlineExceeded)
      (void)sendGrant(peer_, {Word::refused, number_, 0, 0, status.message()}, deadline_);
    return status;
  }

 private:
  struct Copy {
    std::unique_ptr<PendingCopy> copy;
    bool last;
  };

  Status receiveAll() {
    HMC_TRY(sendGrant(peer_, {Word::ready, number_, slot_, kBulkSlots, ""}, deadline_));
    PollPause pause;
    for (bool last = false; !last;) {
      if (underWay_.empty() || peer_.channel().unread(kBulkChunk)) {
        HMC_ASSIGN(auto chunk, receiveChunk(peer_, number_, slot_, deadline_));
        if (chunk) HMC_TRY(startCopy(*chunk));
        pause.restart();
        continue;
      }
      // Chunks that come meanwhile are started at once, so that the device always has a next one.
      HMC_ASSIGN(const bool copied, underWay_.front().copy->passed());
      if (!copied) {
        HMC_TRY(pause.next(deadline_));
        continue;
      }
      pause.restart();
      last = underWay_.front().last;
      underWay_.pop_front();
      HMC_TRY(sendGrant(peer_, {Word::taken, number_, 0, 0, ""}, deadline_));
    }
    return Status();
  }

  Status startCopy(const BulkChunk& chunk) {
    if (!fits(received_, chunk.size, into_.size)) {
      return error(Code::outOfRange, "{} sends more than the {} bytes that there is room for",
                   peer_.title(), into_.size);
    }
    HMC_ASSIGN(auto copy,
               PendingCopy::start(into_.slice(received_, chunk.size),
                                  buffer_.slice(count_++ % kBulkSlots * slot_, chunk.size)));
    underWay_.push_back({std::move(copy), chunk.last});
    received_ += chunk.size;
    return Status();
  }

  PeerState& peer_;
  const Region buffer_;
  const size_t slot_;
  const Region into_;
  const Deadline deadline_;
  const uint64_t number_ = randomU64() | 1;
  size_t received_ = 0;  // bytes, with those that are being copied
  size_t count_ = 0;     // chunks
  std::deque<Copy> underWay_;
};

}  // namespace

// Copies between the buffer and that device shall be quick, and not wait for each other.
Status Bulk::prepare(const Device& other) {
  if (slotSize(*buffer_) == 0) {
    return error(Code::outOfRange,
                 "sendDataTo and recvDataFrom need a buffer of at least {} bytes, this one has {}",
                 2 * kBulkSlots, buffer_->region().size);
  }
  if (other.isHost() || !buffer_->host()) return Status();
  HMC_ASSIGN(Backend * backend, findBackend(other));
  pins_.pin(buffer_->region(), *backend);
  return Status();
}

// The memory as transfers can start from it. None where the way through the buffer is shorter: RDMA
// would register every page of it.
Result<std::shared_ptr<LocalMemory>> Bulk::source(const Connection& connection,
                                                  const Region& from) {
  if (from.size < kWorthRegistering || connection.buffer->transport() == "verbs")
    return std::shared_ptr<LocalMemory>();
  return node_->registerMemory("", from, Access::read, /*owned=*/false);
}

Status Bulk::send(Connection& connection, const Region& from, Deadline deadline) {
  HMC_TRY(prepare(from.device));
  HMC_ASSIGN(auto memory, source(connection, from));
  std::lock_guard oneAtATime(connection.turns->send);
  std::optional<BulkGrant> grant;
  while (!grant) {
    HMC_ASSIGN(grant, receiveGrant(*connection.peer, 0, deadline));
  }
  while (grant->word == Word::ready) {
    HMC_ASSIGN(grant, Sending(*grant, connection, buffer_, memory, from, deadline).run());
  }
  return Status();
}

Result<size_t> Bulk::receive(Connection& connection, const Region& into, Deadline deadline) {
  HMC_TRY(prepare(into.device));
  std::lock_guard oneAtATime(connection.turns->receive);
  return Receiving(*connection.peer, *buffer_, into, deadline).run();
}

}  // namespace hmc
